package migration

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// The kinds that scale by the metric of an object.
const (
	KindHPA    = "HorizontalPodAutoscaler"
	KindScaled = "ScaledObject"
)

// autoscalers are what becomes of a HorizontalPodAutoscaler or ScaledObject that follows the
// metric of an object, or scales its Deployment: one for each of the objects that were made
// of it, on its target and with a selector of its name. Where one was made, nothing but the
// name can have changed, and the autoscaler stays as it is.
func autoscalers(d *Document, made map[string][]Variant) ([]Document, error) {
	name, err := followed(d, made)
	if err != nil {
		return nil, err
	}
	of := made[key(d.Namespace, name)]
	if len(of) == 0 || len(of) == 1 && of[0].Name == name {
		return []Document{*d}, nil
	}
	var all []Document
	for i := range of {
		t := &of[i]
		copied, err := Clone(d.Object)
		if err != nil {
			return nil, err
		}
		one := Document{File: d.File, Kind: d.Kind, Namespace: d.Namespace, Name: suffixed(d.Name, name, t.Name), Object: copied}
		metadata, _ := copied["metadata"].(map[string]any)
		copied["metadata"] = ownMetadata(metadata, one.Name)
		delete(copied, "status")
		spec, _ := copied["spec"].(map[string]any)
		target, _ := spec["scaleTargetRef"].(map[string]any)
		if target != nil {
			target["name"] = t.Target()
		}
		selectors{from: name, to: t.Name, accelerator: t.Accelerator}.rewrite(spec)
		all = append(all, one)
	}
	return all, nil
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
	kept := map[string]any{"name": name}
	for _, field := range []string{"namespace", "labels"} {
		if value, ok := metadata[field]; ok {
			kept[field] = value
		}
	}
	if annotations, _ := metadata["annotations"].(map[string]any); len(annotations) > 0 {
		delete(annotations, lastApplied)
		if len(annotations) > 0 {
			kept["annotations"] = annotations
		}
	}
	return kept
}

// follows finds the object in a selector of PromQL.
var follows = regexp.MustCompile(`variant_name\s*=\s*["']([^"']*)["']`)

// followed is the object of an earlier form that an autoscaler follows: by its selector,
// else by its target, whose Deployment had the object's name.
func followed(d *Document, made map[string][]Variant) (string, error) {
	text, err := json.Marshal(d.Object["spec"])
	if err != nil {
		return "", err
	}
	var spec struct {
		ScaleTargetRef struct {
			Name string `json:"name"`
		} `json:"scaleTargetRef"`
		Metrics []struct {
			External struct {
				Metric struct {
					Selector struct {
						MatchLabels map[string]string `json:"matchLabels"`
					} `json:"selector"`
				} `json:"metric"`
			} `json:"external"`
		} `json:"metrics"`
		Triggers []struct {
			Metadata map[string]any `json:"metadata"`
		} `json:"triggers"`
	}
	if err := json.Unmarshal(text, &spec); err != nil {
		return "", fmt.Errorf("its spec cannot be read: %w", err)
	}
	for _, m := range spec.Metrics {
		if name := m.External.Metric.Selector.MatchLabels["variant_name"]; made[key(d.Namespace, name)] != nil {
			return name, nil
		}
	}
	for _, t := range spec.Triggers {
		query, _ := t.Metadata["query"].(string)
		if found := follows.FindStringSubmatch(query); found != nil && made[key(d.Namespace, found[1])] != nil {
			return found[1], nil
		}
	}
	return spec.ScaleTargetRef.Name, nil
}

// selectors rewrites the selectors of one object to another one.
type selectors struct{ from, to, accelerator string }

// rewrite changes all selectors below a value: labels of a selector, and queries.
func (s selectors) rewrite(value any) {
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			s.rewrite(item)
		}
	case map[string]any:
		if v["variant_name"] == s.from {
			v["variant_name"] = s.to
			if _, ok := v["accelerator_type"]; ok {
				v["accelerator_type"] = s.accelerator
			}
		}
		if query, ok := v["query"].(string); ok {
			v["query"] = follows.ReplaceAllStringFunc(query, func(found string) string {
				return strings.Replace(found, s.from, s.to, 1)
			})
		}
		for _, item := range v {
			s.rewrite(item)
		}
	}
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
