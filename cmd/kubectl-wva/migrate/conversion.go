package migrate

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/v1alpha2"
	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/config"
	"llmd.ai/workload-variant-autoscaler/pkg/llamastack/migration"
)

// conversion is what becomes of all documents together.
type conversion struct {
	// documents are the objects of the present form, autoscalers and Deployments.
	documents []document
	// variants are those of the documents that were made, by the key of the object that
	// they were made of.
	variants map[string][]turned
	// replaced are the documents that others take the place of.
	replaced []document
	// missing are the Deployments that are to be made.
	missing []string
	// deployments are those that were given.
	deployments map[string]document
}

// errUnknown says that a document is of a kind that is not turned.
var errUnknown = errors.New("has no earlier form that is known")

// convert turns documents into the present form.
func convert(given []document, skeletons bool) (*conversion, error) {
	c := &conversion{variants: map[string][]turned{}, deployments: map[string]document{}}
	costs, err := c.sources(given)
	if err != nil {
		return nil, err
	}
	// Variants first: what follows them is turned by what they became.
	out := make([][]document, len(given))
	for i := range given {
		if d := &given[i]; d.kind == v1alpha1.Kind && d.group() == v1alpha1.GroupName {
			if out[i], err = c.variant(d, costs); err != nil {
				return nil, d.wrong(err)
			}
		}
	}
	for i := range given {
		if out[i] == nil {
			d := &given[i]
			out[i], err = c.other(d)
			if errors.Is(err, errUnknown) {
				return nil, fmt.Errorf("%s: %s %q of %v %w: leave it out", d.file, d.kind, d.name, d.object["apiVersion"], err)
			} else if err != nil {
				return nil, d.wrong(err)
			}
		}
	}
	c.documents = slices.Concat(out...)
	return c, c.targets(skeletons)
}

// sources are the documents that others are made from: prices and Deployments.
func (c *conversion) sources(given []document) (costs *config.UnitCosts, err error) {
	for i := range given {
		d := &given[i]
		switch {
		case d.kind == "Deployment" && d.group() == "apps":
			c.deployments[key(d.namespace, d.name)] = *d
		case d.kind == "ConfigMap" && d.group() == "":
			if !slices.Contains(config.Static{UnitCostConfigMap: d.name}.UnitCostConfigMaps(), d.name) {
				continue
			}
			data := map[string]string{}
			values, _ := d.object["data"].(map[string]any)
			for name, value := range values {
				data[name], _ = value.(string)
			}
			parsed, _, err := config.ParseUnitCosts(data)
			if err != nil {
				return nil, d.wrong(err)
			}
			costs = &parsed
		}
	}
	return costs, nil
}

// variant are the objects of an object of an earlier form; one of the present form stays as
// it is.
func (c *conversion) variant(d *document, costs *config.UnitCosts) ([]document, error) {
	if !isEarlier(d.object) {
		return []document{*d}, nil
	}
	made, err := variants(d.text, costs)
	if err != nil {
		return nil, err
	}
	var all []document
	for i := range made {
		t := &made[i]
		t.file = d.file
		t.notes = append(t.notes, fmt.Sprintf("%s -> VariantAutoscaling %s", t.from, t.name))
		if len(made) > 1 && c.lacks(t) {
			t.notes = append(t.notes, t.toBeMade())
		}
		all = append(all, t.document)
	}
	c.variants[key(d.namespace, d.name)] = made
	c.replaced = append(c.replaced, *d)
	return all, nil
}

// other are the documents of another kind.
func (c *conversion) other(d *document) ([]document, error) {
	switch d.group() + " " + d.kind {
	case v1alpha2.GroupName + " " + v1alpha2.Kind:
		text, err := llamaStack(d.text)
		return []document{{file: d.file, kind: d.kind, namespace: d.namespace, name: d.name, text: text}}, err
	case "autoscaling " + kindHPA, "keda.sh " + kindScaled:
		all, err := autoscalers(d, c.variants)
		if err == nil && (len(all) > 1 || all[0].name != d.name) {
			c.replaced = append(c.replaced, *d)
		}
		c.followed(d)
		return all, err
	case "apps Deployment", " ConfigMap":
		return []document{}, nil
	}
	return nil, errUnknown
}

// followed notes that somebody else scales the targets of objects.
func (c *conversion) followed(d *document) {
	name, err := followed(d, c.variants)
	if err != nil || len(c.variants[key(d.namespace, name)]) == 0 {
		return
	}
	made := c.variants[key(d.namespace, name)]
	for i := range made {
		if spec, ok := made[i].object["spec"].(map[string]any); ok && spec["actuation"] == nil {
			// It acts on the metric, as before; with Scale both would write.
			spec["actuation"] = string(v1alpha1.ActuationMetric)
		}
	}
}

// targets lists the Deployments that are to be made, and makes skeletons of them.
func (c *conversion) targets(skeletons bool) error {
	for _, old := range c.replaced {
		made := c.variants[key(old.namespace, old.name)]
		if len(made) < 2 {
			continue
		}
		for i := range made {
			t := &made[i]
			if !c.lacks(t) {
				continue
			}
			c.missing = append(c.missing, t.toBeMade())
			if !skeletons {
				continue
			}
			from, ok := c.deployments[key(old.namespace, old.name)]
			if !ok {
				return fmt.Errorf("--deployments needs Deployment %s, which all its variants shared: give it with -f", key(old.namespace, old.name))
			}
			made, notes, err := skeleton(from.object, t)
			if err != nil {
				return err
			}
			made.notes = notes
			c.documents = append(c.documents, made)
		}
	}
	return nil
}

// lacks reports whether the Deployment of an object is to be made.
func (c *conversion) lacks(t *turned) bool {
	_, there := c.deployments[key(t.namespace, t.name)]
	return t.ownTarget && !there
}

func (t *turned) toBeMade() string {
	return fmt.Sprintf("Deployment %s is to be made, with %d x %s for a replica: one object scales one Deployment now", t.name, t.count, t.accelerator)
}

// llamaStack has the moves of fields in comments before the object.
func llamaStack(text []byte) ([]byte, error) {
	migrated, err := migration.Migrate(text)
	if err != nil {
		return nil, err
	}
	var all bytes.Buffer
	for _, move := range migrated.Moves {
		fmt.Fprintf(&all, "# %s\n", move)
	}
	all.Write(migrated.Text)
	return all.Bytes(), nil
}
