package migration

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/carrying"
	"llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/v1alpha2"
	"llmd.ai/workload-variant-autoscaler/pkg/llamastack/validation"
)

// Migrated is an object as v1alpha2.
type Migrated struct {
	// Text is YAML.
	Text []byte
	// Moves say in one line each which field went where.
	Moves []string
}

// added are what a cluster adds to the metadata of an object.
var added = []string{"creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid", "ownerReferences"}

// lastApplied is where kubectl keeps the text that it applied.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// moves are the fields of v1alpha1 and where they are in v1alpha2.
var moves = [][2]string{
	{"spec.replicas", "spec.workload.replicas"},
	{"spec.server.distribution.name", "spec.distribution.name"},
	{"spec.server.distribution.image", "spec.distribution.image"},
	{"spec.server.containerSpec.port", "spec.networking.port"},
	{"spec.server.containerSpec.env", "spec.workload.overrides.env"},
	{"spec.server.containerSpec.command", "spec.workload.overrides.command"},
	{"spec.server.containerSpec.args", "spec.workload.overrides.args"},
	{"spec.server.containerSpec.resources", "spec.workload.resources"},
	{"spec.server.containerSpec.name", carried},
	{"spec.server.workers", "spec.workload.workers"},
	{"spec.server.storage.size", "spec.workload.storage.size"},
	{"spec.server.storage.mountPath", "spec.workload.storage.mountPath"},
	{"spec.server.podOverrides.serviceAccountName", "spec.workload.overrides.serviceAccountName"},
	{"spec.server.podOverrides.volumes", "spec.workload.overrides.volumes"},
	{"spec.server.podOverrides.volumeMounts", "spec.workload.overrides.volumeMounts"},
	{"spec.server.podOverrides.terminationGracePeriodSeconds", carried},
	{"spec.server.autoscaling", "spec.workload.autoscaling"},
	{"spec.server.podDisruptionBudget", "spec.workload.podDisruptionBudget"},
	{"spec.server.topologySpreadConstraints", "spec.workload.topologySpreadConstraints"},
	{"spec.server.tlsConfig.caBundle.configMapName", "spec.networking.tls.caBundle.configMapName"},
	{"spec.server.tlsConfig.caBundle.configMapNamespace", carried},
	{"spec.server.tlsConfig.caBundle.configMapKeys", carried},
	{"spec.server.userConfig.configMapName", "spec.overrideConfig.configMapName"},
	{"spec.server.userConfig.configMapNamespace", carried},
	{"spec.network.exposeRoute", "spec.networking.expose"},
	{"spec.network.allowedFrom", "spec.networking.allowedFrom"},
}

// carried is where fields are that v1alpha2 does not have.
const carried = "the annotations " + v1alpha2.PrefixV1alpha1 + "*"

// Migrate reads an object of v1alpha1 in YAML or JSON. An object of v1alpha2 stays as it
// is, without moves.
func Migrate(text []byte) (Migrated, error) {
	var written map[string]any
	if err := yaml.Unmarshal(text, &written); err != nil {
		return Migrated{}, err
	}
	if written["apiVersion"] == v1alpha2.GroupVersion.String() {
		return Migrated{Text: text}, nil
	}
	view := &v1alpha1.LlamaStackDistribution{}
	view.Spec.Replicas = v1alpha2.DefaultReplicas
	if err := yaml.UnmarshalStrict(withoutCluster(written), view); err != nil {
		return Migrated{}, fmt.Errorf("it is no LlamaStackDistribution of v1alpha1: %w", err)
	}
	converted := &v1alpha2.LlamaStackDistribution{}
	v1alpha1.ConvertToHub(view, converted)
	extras, keys := v1alpha2.ReadV1alpha1Extras(converted)
	hub, rest := validation.Effective(converted)
	if rest != nil {
		return Migrated{}, fmt.Errorf("v1alpha2 has no valid form for it: %w", validation.Rejected(rest).ToAggregate())
	}
	if err := checkTargets(hub.Spec.Workload); err != nil {
		return Migrated{}, err
	}
	extras.Rejected = nil // it is in the object now
	if err := validation.Create(hub).ToAggregate(); err != nil {
		return Migrated{}, fmt.Errorf("v1alpha2 would refuse it: %w", err)
	}
	if err := keepMeaning(hub, extras, keys); err != nil {
		return Migrated{}, err
	}
	out, err := textOf(hub)
	return Migrated{Text: out, Moves: movesOf(written)}, err
}

// checkTargets refuses a target that v1alpha1 took and v1alpha2 does not.
func checkTargets(w *v1alpha2.Workload) error {
	if w == nil || w.Autoscaling == nil {
		return nil
	}
	for _, target := range []*int32{w.Autoscaling.TargetCPUUtilizationPercentage, w.Autoscaling.TargetMemoryUtilizationPercentage} {
		if target != nil && *target > 100 {
			return fmt.Errorf("v1alpha2 has no valid form for it: spec.server.autoscaling: a target is %d, and may be at most 100", *target)
		}
	}
	return nil
}

// withoutCluster is the object without what a cluster added.
func withoutCluster(written map[string]any) []byte {
	delete(written, "status")
	if metadata, ok := written["metadata"].(map[string]any); ok {
		for _, key := range added {
			delete(metadata, key)
		}
		if annotations, ok := metadata["annotations"].(map[string]any); ok {
			delete(annotations, lastApplied)
		}
	}
	text, _ := json.Marshal(written) // it was read from a text
	return text
}

// keepMeaning leaves only what changes the server and its children in the annotations: the
// way back to the same text is no longer wanted. An empty network admits an ingress.
func keepMeaning(hub *v1alpha2.LlamaStackDistribution, extras v1alpha2.V1alpha1Extras, keys []string) error {
	for _, key := range keys {
		delete(hub.Annotations, key)
	}
	extras.PortUnset, extras.ContainerNameUnset = false, false
	maps.DeleteFunc(extras.Presence, func(parent string, _ bool) bool { return parent != v1alpha2.PresenceNetwork })
	if extras.IsEmpty() {
		return nil
	}
	if hub.Annotations == nil {
		hub.Annotations = map[string]string{}
	}
	return carrying.Write(hub.Annotations, v1alpha2.PrefixV1alpha1, extras)
}

func textOf(hub *v1alpha2.LlamaStackDistribution) ([]byte, error) {
	hub.APIVersion, hub.Kind = v1alpha2.GroupVersion.String(), v1alpha2.Kind
	text, err := json.Marshal(hub)
	if err != nil {
		return nil, err
	}
	var content map[string]any
	if err := json.Unmarshal(text, &content); err != nil {
		return nil, err
	}
	delete(content, "status")
	return yaml.Marshal(content)
}

// movesOf are the moves of the fields that were written.
func movesOf(written map[string]any) []string {
	var all []string
	for _, move := range moves {
		value, found := valueAt(written, strings.Split(move[0], "."))
		// What says only what would be so without it is nowhere in v1alpha2.
		if found && value != unsaid[move[0]] {
			all = append(all, move[0]+" -> "+move[1])
		}
	}
	return slices.Clip(all)
}

// unsaid are the values of fields that change nothing.
var unsaid = map[string]any{"spec.server.containerSpec.name": v1alpha2.DefaultContainerName, "spec.network.exposeRoute": false}

func valueAt(from any, path []string) (any, bool) {
	for _, key := range path {
		fields, _ := from.(map[string]any)
		found, ok := fields[key]
		if !ok {
			return nil, false
		}
		from = found
	}
	return from, true
}
