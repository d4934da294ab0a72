package migrate

import (
	"bytes"
	"fmt"
	"slices"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/v1alpha2"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/config"
	"llmd.ai/workload-variant-autoscaler/pkg/inventory"
	servers "llmd.ai/workload-variant-autoscaler/pkg/llamastack/migration"
	"llmd.ai/workload-variant-autoscaler/pkg/migration"
)

// convert turns documents into the present form, at the prices that are among them.
func convert(given []migration.Document, skeletons bool) (*migration.Conversion, error) {
	unitCost, err := prices(given)
	if err != nil {
		return nil, err
	}
	c, err := migration.Convert(given, migration.Options{UnitCost: unitCost, Other: llamaStack})
	if err != nil || !skeletons {
		return c, err
	}
	for _, m := range c.Missing {
		if m.From == nil {
			return nil, fmt.Errorf("--deployments needs Deployment %s, which all its variants shared: give it with -f", m.Shared)
		}
		made, err := skeleton(m.From.Object, m.Variant)
		if err != nil {
			return nil, err
		}
		c.Documents = append(c.Documents, made)
	}
	return c, nil
}

// prices are those of the ConfigMap with the costs of accelerators, if it is given.
func prices(given []migration.Document) (migration.UnitCost, error) {
	var costs *config.UnitCosts
	for i := range given {
		d := &given[i]
		if d.Kind != "ConfigMap" || d.Group() != "" || !slices.Contains(config.Static{UnitCostConfigMap: d.Name}.UnitCostConfigMaps(), d.Name) {
			continue
		}
		data := map[string]string{}
		values, _ := d.Object["data"].(map[string]any)
		for name, value := range values {
			data[name], _ = value.(string)
		}
		parsed, _, err := config.ParseUnitCosts(data)
		if err != nil {
			return nil, d.Wrong(err)
		}
		costs = &parsed
	}
	if costs == nil {
		return nil, nil
	}
	return func(accelerator string) (capacity.Cost, bool) {
		return costs.Of(inventory.Normalize(accelerator).Device())
	}, nil
}

// llamaStack is a server of Llama Stack in the present form, with the moves of fields in
// comments before the object.
func llamaStack(d *migration.Document) (migration.Document, error) {
	if d.Group() != v1alpha2.GroupName || d.Kind != v1alpha2.Kind {
		return migration.Document{}, migration.ErrUnknown
	}
	migrated, err := servers.Migrate(d.Text)
	if err != nil {
		return migration.Document{}, err
	}
	var all bytes.Buffer
	for _, move := range migrated.Moves {
		fmt.Fprintf(&all, "# %s\n", move)
	}
	all.Write(migrated.Text)
	return migration.Document{File: d.File, Kind: d.Kind, Namespace: d.Namespace, Name: d.Name, Text: all.Bytes()}, nil
}
