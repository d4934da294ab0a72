package migration

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The kinds that scale by the metric of an object.
const (
	KindHPA    = "HorizontalPodAutoscaler"
	KindScaled = "ScaledObject"
)

// following is what an autoscaler follows.
type following struct {
	// name is that of the object of an earlier form, and of are the objects that were made of it.
	name string
	of   []Variant
}

// targeted notes what becomes of an autoscaler on the target of an object: of the Deployment that
// all variants shared, one on each of their own; of a variant's own target, that of this variant.
func (c *Conversion) targeted(d *Document, made []Variant, v *Variant) {
	if v.ownTarget {
		c.followers[targetKey(d.Namespace, kindDeployment, v.shared)] = following{d.Name, made}
		return
	}
	spec, _ := v.Object["spec"].(map[string]any)
	ref, _ := spec["scaleTargetRef"].(map[string]any)
	kind, _ := ref["kind"].(string)
	c.followers[targetKey(d.Namespace, kind, v.Target())] = following{d.Name, []Variant{*v}}
}

func targetKey(namespace, kind, name string) string {
	return cmp.Or(kind, kindDeployment) + " " + key(namespace, name)
}

// act has the objects only publish their metric: the autoscaler acts on it, as before; with Scale
// both would write.
func (f following) act() {
	for i := range f.of {
		if spec, ok := f.of[i].Object["spec"].(map[string]any); ok && spec["actuation"] == nil {
			spec["actuation"] = actuationByMetric
		}
	}
}

// autoscalers are what becomes of a HorizontalPodAutoscaler or ScaledObject that follows the
// metric of an object, or scales its target: one for each of the objects that were made
// of it, on its target and with a selector of its name. Where one was made, nothing but the
// name can have changed, and the autoscaler stays as it is. One that KEDA made of a ScaledObject
// is left out: KEDA makes it anew.
func (f following) autoscalers(d *Document) ([]Document, error) {
	owner := controllerOf(d)
	if d.Kind == KindHPA && owner["kind"] == KindScaled {
		return nil, nil
	}
	if len(f.of) == 0 || len(f.of) == 1 && f.of[0].Name == f.name {
		return []Document{*d}, nil
	}
	if owner != nil {
		return nil, fmt.Errorf("%v %v makes it, and would make it again: change it there, and leave it out", owner["kind"], owner["name"])
	}
	var all []Document
	for i := range f.of {
		t := &f.of[i]
		copied, err := Clone(d.Object)
		if err != nil {
			return nil, err
		}
		one := Document{File: d.File, Kind: d.Kind, Namespace: d.Namespace, Name: suffixed(d.Name, f.name, t.Name), Object: copied}
		metadata, _ := copied["metadata"].(map[string]any)
		if annotations, _ := metadata["annotations"].(map[string]any); annotations[metricsOfV1] != nil {
			return nil, fmt.Errorf("it is of autoscaling/v1, which has its metrics in an annotation: give it as autoscaling/v2, from `kubectl get hpa.v2.autoscaling %s -o yaml`", d.Name)
		}
		copied["metadata"] = ownMetadata(metadata, one.Name)
		delete(copied, "status")
		spec, _ := copied["spec"].(map[string]any)
		target, _ := spec["scaleTargetRef"].(map[string]any)
		if target != nil {
			target["name"] = t.Target()
		}
		advanced, _ := spec["advanced"].(map[string]any)
		config, _ := advanced["horizontalPodAutoscalerConfig"].(map[string]any)
		if name, _ := config["name"].(string); name != "" {
			config["name"] = suffixed(name, f.name, t.Name)
		}
		if err := (selectors{from: f.name, to: t.Name, accelerator: t.Accelerator}).rewrite(spec); err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

// KEDA's annotations by which a ScaledObject is held.
const (
	annotationPaused         = "autoscaling.keda.sh/paused"
	annotationPausedReplicas = "autoscaling.keda.sh/paused-replicas"
)

// held says what it means that a ScaledObject is held by an annotation: those that are made of it have
// the annotation too, and act on no metric.
func (f following) held(d *Document) (notes []string) {
	metadata, _ := d.Object["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	if d.Kind != KindScaled || len(f.of) == 0 {
		return nil
	}
	if replicas, fixed := annotations[annotationPausedReplicas]; fixed {
		return []string{fmt.Sprintf("ScaledObject %s is held at %v replicas by its annotation %s, and so is each that follows the %d objects: set it to what each is to have, or take it away, because a held one acts on no metric",
			d.Key(), replicas, annotationPausedReplicas, len(f.of))}
	}
	value, given := annotations[annotationPaused].(string)
	// What is no boolean is meant as true.
	if paused, err := strconv.ParseBool(value); given && (paused || err != nil) {
		return []string{fmt.Sprintf("ScaledObject %s is held by its annotation %s, and so is each that is made of it: take it away when they are to act on the metric", d.Key(), annotationPaused)}
	}
	return nil
}

// metricsOfV1 is where autoscaling/v1 keeps what it has no field for.
const metricsOfV1 = "autoscaling.alpha.kubernetes.io/metrics"

// controllerOf is the reference to what makes an object; nil where a user does.
func controllerOf(d *Document) map[string]any {
	metadata, _ := d.Object["metadata"].(map[string]any)
	owners, _ := metadata["ownerReferences"].([]any)
	for _, owner := range owners {
		if o, _ := owner.(map[string]any); o["controller"] == true {
			return o
		}
	}
	return nil
}

// Target is the name of what the object scales.
func (v *Variant) Target() string {
	spec, _ := v.Object["spec"].(map[string]any)
	target, _ := spec["scaleTargetRef"].(map[string]any)
	name, _ := target["name"].(string)
	return name
}

// suffixed is the name of an autoscaler with what the object's name got more.
func suffixed(autoscaler, before, after string) string {
	return autoscaler + strings.TrimPrefix(after, before)
}

// ownMetadata is what users write of metadata, under another name.
func ownMetadata(metadata map[string]any, name string) map[string]any {
	made := map[string]any{"name": name}
	if namespace, ok := metadata["namespace"]; ok {
		made["namespace"] = namespace
	}
	for _, field := range []string{"labels", "annotations"} {
		values, _ := metadata[field].(map[string]any)
		if own := kept(values, metadata["name"] != name); len(own) > 0 {
			made[field] = own
		}
	}
	return made
}

// The matchers of a selector of PromQL that tell an object.
var (
	matcher   = regexp.MustCompile(`(variant_name\s*)(=~|!=|!~|=)(\s*["'])([^"']*)(["'])`)
	ofDevices = regexp.MustCompile(`(accelerator_type\s*=~?\s*["'])[^"']*(["'])`)
)

// follows is what an autoscaler follows: by its selector, else by its target.
func (c *Conversion) follows(d *Document) (following, error) {
	text, err := json.Marshal(d.Object["spec"])
	if err != nil {
		return following{}, err
	}
	var spec struct {
		ScaleTargetRef struct {
			Kind string `json:"kind"`
			Name string `json:"name"`
		} `json:"scaleTargetRef"`
		Metrics []struct {
			External struct {
				Metric struct {
					Selector struct {
						MatchLabels      map[string]string `json:"matchLabels"`
						MatchExpressions []struct {
							Key    string   `json:"key"`
							Values []string `json:"values"`
						} `json:"matchExpressions"`
					} `json:"selector"`
				} `json:"metric"`
			} `json:"external"`
		} `json:"metrics"`
		Triggers []struct {
			Metadata map[string]any `json:"metadata"`
		} `json:"triggers"`
	}
	if err := json.Unmarshal(text, &spec); err != nil {
		return following{}, fmt.Errorf("its spec cannot be read: %w", err)
	}
	var names []string
	for _, m := range spec.Metrics {
		selector := m.External.Metric.Selector
		names = append(names, selector.MatchLabels["variant_name"])
		for _, e := range selector.MatchExpressions {
			if e.Key == "variant_name" {
				names = append(names, e.Values...)
			}
		}
	}
	for _, t := range spec.Triggers {
		query, _ := t.Metadata["query"].(string)
		for _, found := range matcher.FindAllStringSubmatch(query, -1) {
			names = append(names, found[4])
		}
	}
	for _, name := range names {
		if of := c.variants[key(d.Namespace, name)]; of != nil {
			return following{name, of}, nil
		}
	}
	return c.followers[targetKey(d.Namespace, spec.ScaleTargetRef.Kind, spec.ScaleTargetRef.Name)], nil
}

// selectors rewrites the selectors of one object to another one.
type selectors struct{ from, to, accelerator string }

// rewrite changes all selectors below a value: labels of a selector, and queries.
func (s selectors) rewrite(value any) error {
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			if err := s.rewrite(item); err != nil {
				return err
			}
		}
	case map[string]any:
		if v["variant_name"] == s.from {
			v["variant_name"] = s.to
			if _, ok := v["accelerator_type"]; ok {
				v["accelerator_type"] = s.accelerator
			}
		}
		if values, _ := v["values"].([]any); v["key"] == "variant_name" && slices.Contains(values, any(s.from)) {
			if len(values) > 1 || v["operator"] != "In" {
				return fmt.Errorf("its selector has variant_name %v %v: write matchLabels with the name of one object", v["operator"], values)
			}
			v["values"] = []any{s.to}
		}
		if query, ok := v["query"].(string); ok {
			changed, err := s.query(query)
			if err != nil {
				return err
			}
			v["query"] = changed
		}
		for _, item := range v {
			if err := s.rewrite(item); err != nil {
				return err
			}
		}
	}
	return nil
}

// query is a query about the other object. What selects more than one name selects nothing, or too
// much, once the objects have other names.
func (s selectors) query(query string) (string, error) {
	for _, found := range matcher.FindAllStringSubmatch(query, -1) {
		if name, operator := found[4], found[2]; operator != "=" && name != s.from || name == s.from && operator[0] == '!' {
			return "", fmt.Errorf("its query selects %s: write variant_name=\"%s\", or leave it out", found[0], s.from)
		}
	}
	ours := false
	changed := matcher.ReplaceAllStringFunc(query, func(found string) string {
		m := matcher.FindStringSubmatch(found)
		if m[4] != s.from {
			return found
		}
		ours = true
		return m[1] + m[2] + m[3] + s.to + m[5]
	})
	if ours {
		changed = ofDevices.ReplaceAllString(changed, "${1}"+s.accelerator+"${2}")
	}
	return changed, nil
}

// Clone is a copy of an object that shares nothing with it.
func Clone(object map[string]any) (map[string]any, error) {
	text, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	var made map[string]any
	return made, json.Unmarshal(text, &made)
}
