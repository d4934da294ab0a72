package scenario

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"llmd.ai/workload-variant-autoscaler/pkg/config"
)

// choose is one of several named things: the one that is asked for, else the one that
// the file names, else the only one. The flag is what a person asks with.
func choose[T any](field, named, flag, asked, standard string, all map[string]T) (string, error) {
	names := slices.Sorted(maps.Keys(all))
	switch {
	case asked != "":
		if _, ok := all[asked]; ok {
			return asked, nil
		}
		if len(names) == 0 {
			return "", fmt.Errorf("%s is %q, and the scenario has no %s to choose from: leave it out", flag, asked, field)
		}
		return "", fmt.Errorf("%s is %q: expected one of %s, which the scenario has", flag, asked, strings.Join(names, ", "))
	case standard != "":
		if _, ok := all[standard]; ok {
			return standard, nil
		}
		if len(names) == 0 {
			return "", fmt.Errorf("%s is %q, and the scenario has no %s to choose from: leave it out", named, standard, field)
		}
		return "", fmt.Errorf("%s is %q: expected one of %s, the names in %s", named, standard, strings.Join(names, ", "), field)
	case len(names) == 1:
		return names[0], nil
	}
	return "", fmt.Errorf("%s has %s: expected one to be chosen with %s or the key %s", field, strings.Join(names, ", "), flag, named)
}

// unitCosts are the prices of single devices, and the name of their list.
func (d *document) unitCosts(asked string) (config.UnitCosts, string, error) {
	at, list, name := "prices", d.Prices, asked
	if d.PriceLists != nil {
		if d.Prices != nil {
			return config.UnitCosts{}, "", fmt.Errorf("prices and priceLists are both given: expected one of them")
		}
	}
	if d.PriceLists != nil || asked != "" || d.PriceList != "" {
		chosen, err := choose("priceLists", "priceList", "--prices", asked, d.PriceList, d.PriceLists)
		if err != nil {
			return config.UnitCosts{}, "", err
		}
		at, list, name = key("priceLists", chosen), d.PriceLists[chosen], chosen
	}
	entries := make(map[string]string, len(list))
	for device, price := range list {
		text, err := yaml.Marshal(map[string]any{"cost": price})
		if err != nil {
			return config.UnitCosts{}, "", fmt.Errorf("%s: %w", key(at, device), err)
		}
		entries[device] = string(text)
	}
	costs, warnings, err := config.ParseUnitCosts(entries)
	return costs, name, firstOf(at, warnings, err)
}
