package validation

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/v1alpha2"
)

// lastApplied is where kubectl keeps the text that it applied.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// Reapplied warns of what v1alpha1 once said and a manifest of v1alpha2 does not, where the object
// was last applied as v1alpha1: kubectl takes away by the fields of what it applied before, and those
// of v1alpha1 have other places.
func Reapplied(old, object *v1alpha2.LlamaStackDistribution) []string {
	before, is := appliedTo(old), appliedTo(object)
	if before["apiVersion"] != v1alpha1.GroupVersion.String() || is["apiVersion"] != v1alpha2.GroupVersion.String() {
		return nil
	}
	text, err := json.Marshal(object.Spec)
	if err != nil {
		return nil
	}
	var spec map[string]any
	if json.Unmarshal(text, &spec) != nil {
		return nil
	}
	manifest, _ := is["spec"].(map[string]any)
	kept := notIn(spec, manifest, "spec")
	if len(kept) == 0 {
		return nil
	}
	slices.Sort(kept)
	return []string{fmt.Sprintf("the object was last applied as v1alpha1, so kubectl apply took nothing away, and it still has %s, which this manifest does not: "+
		"write it by kubectl replace --save-config, or remove these fields", strings.Join(kept, ", "))}
}

// appliedTo is what kubectl applied last to an object; nil where it did not.
func appliedTo(object *v1alpha2.LlamaStackDistribution) map[string]any {
	var applied map[string]any
	if json.Unmarshal([]byte(object.Annotations[lastApplied]), &applied) != nil {
		return nil
	}
	return applied
}

// notIn are the paths of what the spec has and a manifest does not, without defaults.
func notIn(spec, manifest map[string]any, path string) []string {
	var paths []string
	for key, value := range spec {
		at := path + "." + key
		said, found := manifest[key]
		fields, isObject := value.(map[string]any)
		if below, ok := said.(map[string]any); isObject && (!found || ok) && slices.Contains([]string{"spec.workload", "spec.networking", "spec.workload.overrides"}, at) {
			paths = append(paths, notIn(fields, below, at)...)
		} else if !found && !(at == "spec.workload.replicas" && value == float64(v1alpha2.DefaultReplicas)) &&
			!(at == "spec.networking.port" && value == float64(v1alpha2.DefaultPort)) {
			paths = append(paths, at)
		}
	}
	return paths
}
