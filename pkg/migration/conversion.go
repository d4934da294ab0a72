package migration

import (
	"errors"
	"fmt"
	"slices"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// UnitCost is the cost of one device of an accelerator, by the name that an object gives
// it; not ok when it is not known.
type UnitCost func(accelerator string) (cost capacity.Cost, ok bool)

// Options are what a conversion asks others for.
type Options struct {
	// UnitCost gives the objects their cost; nil when no prices are known.
	UnitCost UnitCost
	// Other turns a document of a kind that this package does not know. Its error is
	// ErrUnknown where nobody does.
	Other func(*Document) (Document, error)
}

// Conversion is what becomes of all documents together.
type Conversion struct {
	// Documents are the objects of the present form, and the autoscalers.
	Documents []Document
	// Replaced are the documents that others take the place of.
	Replaced []Document
	// Notes are about documents that something else than a person made, and about autoscalers that
	// a person holds.
	Notes []string
	// Missing are the objects whose Deployment is to be made.
	Missing []Missing

	// variants are those of the documents that were made, by the key of the object that
	// they were made of.
	variants map[string][]Variant
	// followers are what becomes of an autoscaler on a target, by the key of that.
	followers map[string]following
	// deployments are those that were given.
	deployments map[string]*Document
}

// Missing is an object whose Deployment is to be made.
type Missing struct {
	*Variant
	// Shared is the key of the Deployment that its accelerators shared before, and From that
	// Deployment; nil when it was not given.
	Shared string
	From   *Document
}

func (m Missing) String() string { return m.toBeMade() }

// ErrUnknown says that a document is of a kind that is not turned.
var ErrUnknown = errors.New("has no earlier form that is known")

// Convert turns documents into the present form: objects, and the autoscalers that follow
// them. Deployments say what there is already, and are not written again; of ConfigMaps
// nothing is.
func Convert(given []Document, options Options) (*Conversion, error) {
	c := &Conversion{variants: map[string][]Variant{}, followers: map[string]following{}, deployments: map[string]*Document{}}
	for i := range given {
		if d := &given[i]; d.Kind == kindDeployment && d.Group() == "apps" {
			c.deployments[d.Key()] = d
		}
	}
	// Variants first: what follows them is turned by what they became.
	out := make([][]Document, len(given))
	var err error
	for i := range given {
		if d := &given[i]; d.Kind == kindVariant && d.Group() == group {
			if out[i], err = c.variant(d, options.UnitCost); err != nil {
				return nil, d.Wrong(err)
			}
		}
	}
	for i := range given {
		if out[i] == nil {
			d := &given[i]
			out[i], err = c.other(d, options)
			if errors.Is(err, ErrUnknown) {
				return nil, fmt.Errorf("%s: %s %q of %v %w: leave it out", d.File, d.Kind, d.Name, d.Object["apiVersion"], err)
			} else if err != nil {
				return nil, d.Wrong(err)
			}
		}
	}
	c.Documents = slices.Concat(out...)
	c.targets()
	for i := range c.Replaced {
		if d := &c.Replaced[i]; d.keeper() != "" {
			c.Notes = append(c.Notes, fmt.Sprintf("%s %s is kept by %s, which may make it again or take the new ones away: change it there too", d.Kind, d.Key(), d.keeper()))
		}
	}
	return c, nil
}

// Made are the documents that were made, and not those that stay as they are.
func (c *Conversion) Made() (all []Document) {
	for i := range c.Documents {
		if d := &c.Documents[i]; d.Text == nil {
			all = append(all, *d)
		}
	}
	return all
}

// variant are the objects of an object of an earlier form; one of the present form stays as
// it is.
func (c *Conversion) variant(d *Document, unitCost UnitCost) ([]Document, error) {
	if !IsEarlier(d.Object) {
		return []Document{*d}, nil
	}
	made, err := variantsOf(d.Text, unitCost)
	if err != nil {
		return nil, err
	}
	var all []Document
	for i := range made {
		v := &made[i]
		v.File = d.File
		v.Notes = append(v.Notes, fmt.Sprintf("%s -> VariantAutoscaling %s", v.from, v.Name))
		if len(made) > 1 && c.lacks(v) {
			v.Notes = append(v.Notes, v.toBeMade())
		}
		all = append(all, v.Document)
	}
	c.variants[d.Key()] = made
	for i := range made {
		c.targeted(d, made, &made[i])
	}
	c.Replaced = append(c.Replaced, *d)
	return all, nil
}

// other are the documents of another kind.
func (c *Conversion) other(d *Document, options Options) ([]Document, error) {
	switch d.Group() + " " + d.Kind {
	case "autoscaling " + KindHPA, "keda.sh " + KindScaled:
		f, err := c.follows(d)
		if err != nil {
			return nil, err
		}
		all, err := f.autoscalers(d)
		if err == nil && len(all) > 0 && all[0].Text == nil {
			c.Replaced = append(c.Replaced, *d)
		}
		f.act()
		c.Notes = append(c.Notes, f.held(d)...)
		return all, err
	case "apps " + kindDeployment, " ConfigMap":
		return []Document{}, nil
	}
	if options.Other == nil {
		return nil, ErrUnknown
	}
	one, err := options.Other(d)
	return []Document{one}, err
}

// targets lists the Deployments that are to be made.
func (c *Conversion) targets() {
	for i := range c.Replaced {
		made := c.variants[c.Replaced[i].Key()]
		if len(made) < 2 || c.Replaced[i].Kind != kindVariant {
			continue
		}
		for i := range made {
			if v := &made[i]; c.lacks(v) {
				from := key(v.Namespace, v.shared)
				c.Missing = append(c.Missing, Missing{Variant: v, Shared: from, From: c.deployments[from]})
			}
		}
	}
}

// lacks reports whether the Deployment of an object is to be made.
func (c *Conversion) lacks(v *Variant) bool {
	return v.ownTarget && c.deployments[v.Key()] == nil
}

func (v *Variant) toBeMade() string {
	return fmt.Sprintf("Deployment %s is to be made, with %d x %s for a replica: one object scales one Deployment now", v.Name, v.Count, v.Accelerator)
}
