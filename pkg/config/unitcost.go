package config

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/inventory"
)

// publishedUnitCosts is the published name of the ConfigMap of prices.
const publishedUnitCosts = "accelerator-unit-costs"

// UnitCosts are the prices of single accelerators, per hour and in the currency of
// spec.variantCost. The zero UnitCosts knows none.
type UnitCosts struct {
	// Prices are sorted: the narrowest descriptions first.
	Prices []UnitCost
}

// UnitCost is the price of one device.
type UnitCost struct {
	// Device is which devices the price is for.
	Device capacity.Device
	Cost   capacity.Cost
}

// Of is the price of one device, if it is known: that of the narrowest entry which
// covers the device.
func (u UnitCosts) Of(device capacity.Device) (capacity.Cost, bool) {
	for _, price := range u.Prices {
		if price.Device.Covers(device) {
			return price.Cost, true
		}
	}
	return 0, false
}

// Replica is the price of one replica with so many devices: spec.variantCost, else the
// price of its devices, else Unpriced, and then it is not given. On an error, which
// names the field, the price is the one without it.
func (u UnitCosts) Replica(spec *v1alpha1.VariantAutoscalingSpec, device capacity.Device, count int) (cost capacity.Cost, given bool, err error) {
	cost, given, err = spec.Cost()
	if given {
		return cost, true, nil
	}
	if unit, ok := u.Of(device); ok && count > 0 {
		return unit * capacity.Cost(count), true, err
	}
	return Unpriced(device, count), false, err
}

// Unpriced is what a replica counts of which nobody gave a price: the memory of its devices, of which 80 GiB
// count as much as v1alpha1.DefaultCost; so many times that where the memory is not known, and once without
// devices. It orders variants, so that one L40S does not count as much as eight H100. It is no
// sum of money.
func Unpriced(device capacity.Device, count int) capacity.Cost {
	const usual = 80
	if count <= 0 {
		return v1alpha1.DefaultCost
	}
	share := serving.DeviceGiB(device) / usual
	if share <= 0 {
		share = 1
	}
	return v1alpha1.DefaultCost * capacity.Cost(float64(count)*share)
}

// ParseUnitCosts reads the data of the ConfigMap of accelerator prices: each key names
// an accelerator, each value is a JSON or YAML map with its cost per hour, a number
// that may stand in quotes, and the device, the product label's value. A key that no
// rule knows also stands for the devices that its device names. The warnings name
// what has no effect or contradicts itself. On an error nothing of the data is
// usable.
func ParseUnitCosts(data map[string]string) (UnitCosts, []string, error) {
	var costs UnitCosts
	s := &said{}
	first := map[capacity.Device]string{}
	for _, name := range slices.Sorted(maps.Keys(data)) {
		f, ok := parseFields(name, data[name], s)
		if !ok {
			continue
		}
		product := inventory.Normalize(f.text("device"))
		cost, ok := f.cost()
		f.rest()
		if !ok {
			continue
		}
		for _, device := range f.priced(inventory.Normalize(name), product) {
			if first[device] != "" {
				f.wrong("is for %s, as entry %q is: remove one", device, first[device])
				continue
			}
			first[device] = name
			costs.Prices = append(costs.Prices, UnitCost{device, cost})
		}
	}
	if err := s.err(); err != nil {
		return UnitCosts{}, s.warnings, fmt.Errorf("accelerator prices: %w", err)
	}
	slices.SortStableFunc(costs.Prices, func(a, b UnitCost) int { return breadth(a.Device) - breadth(b.Device) })
	return costs, s.warnings, nil
}

// cost is the price of an entry.
func (f fields) cost() (capacity.Cost, bool) {
	value, given := f.take("cost")
	cost, ok := toNumber(value)
	if text, isText := value.(string); isText {
		parsed, err := strconv.ParseFloat(text, 64)
		cost, ok = parsed, err == nil
	}
	switch {
	case !given:
		f.wrong("cost is missing: write the price of one device per hour, such as \"40.0\"")
	case !ok || cost < 0 || math.IsNaN(cost) || math.IsInf(cost, 0):
		f.wrong("cost is %v: write a number of at least 0", value)
	default:
		return capacity.Cost(cost), true
	}
	return 0, false
}

// priced are the devices that an entry is for.
func (f fields) priced(key, product inventory.Name) []capacity.Device {
	switch {
	case !key.Known():
		f.wrong("its name is that of no accelerator: use a name such as H100 or A100-80GB")
		return nil
	case !product.Known() || product.Unlisted || product.Device() == key.Device():
		return []capacity.Device{key.Device()}
	case key.Unlisted:
		return []capacity.Device{key.Device(), product.Device()}
	case !key.Device().Covers(product.Device()):
		f.warn("its device is a %s, and its name counts: correct one of them", product)
	}
	return []capacity.Device{key.Device()}
}

// breadth is greater the less is said of a device; its memory weighs more than its
// form.
func breadth(d capacity.Device) int {
	n := 0
	if d.MemoryGiB == 0 {
		n += 2
	}
	if d.Form == "" {
		n++
	}
	return n
}
