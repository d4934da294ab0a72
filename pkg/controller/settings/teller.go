package settings

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/report/status"
)

// The reasons of events on ConfigMaps.
const (
	eventImmutable = "ImmutableConfigChangeRejected"
	eventInvalid   = "InvalidConfiguration"
	eventIgnored   = "ConfigMapIgnored"
)

// kindScaleToZero is the kind of settings without which no model sleeps.
const kindScaleToZero = "scale-to-zero"

// teller tells by events what of ConfigMaps is not in force, once of each of their
// versions. Of several replicas of a manager only the one that leads tells.
type teller struct {
	recorder events.EventRecorder
	// elected is closed once this replica leads; nil where only the one that leads gets.
	elected <-chan struct{}
	// told are the versions of which was told, by namespace and name.
	told map[types.NamespacedName]string
}

func newTeller(recorder events.EventRecorder, elected <-chan struct{}) teller {
	return teller{recorder: recorder, elected: elected, told: map[types.NamespacedName]string{}}
}

func (t teller) leads() bool {
	select {
	case <-t.elected:
		return true
	default:
		return t.elected == nil
	}
}

// knows reports whether the version of a ConfigMap was told of.
func (t teller) knows(object *corev1.ConfigMap) bool {
	return t.told[client.ObjectKeyFromObject(object)] == versionOf(object)
}

func (t teller) tell(object *corev1.ConfigMap, reason, note string) {
	if !t.leads() || t.knows(object) {
		return
	}
	t.told[client.ObjectKeyFromObject(object)] = versionOf(object)
	t.recorder.Eventf(object, nil, corev1.EventTypeWarning, reason, "Configure", "%s", status.Note(note))
}

func versionOf(object *corev1.ConfigMap) string {
	return string(object.UID) + "/" + object.ResourceVersion
}

// first is the first of the named ConfigMaps that is there; it alone counts. An event on
// each other one says that it does not.
func (t teller) first(names []string, get func(name string) (*corev1.ConfigMap, error)) (counts *corev1.ConfigMap, err error) {
	for _, name := range names {
		object, err := get(name)
		switch {
		case err != nil:
			return nil, err
		case object == nil:
		case counts == nil:
			counts = object
		default:
			t.tell(object, eventIgnored, fmt.Sprintf("ConfigMap %s holds the same kind of settings and counts: remove one of them", counts.Name))
		}
	}
	return counts, nil
}

// refuse tells of a ConfigMap that cannot be used. It reports whether none of its models may
// sleep for that: no version of it was understood since the manager started.
func (t teller) refuse(log klog.Logger, object *corev1.ConfigMap, what string, understood bool, err error) (awake bool) {
	counts := "the last good settings stay"
	switch {
	case understood:
	case what == kindScaleToZero:
		counts, awake = "no model scales to zero until it is corrected", true
	default:
		counts = "what holds without it counts, as no version of it could be used since the manager started"
	}
	log.Error(err, "The ConfigMap is not used; "+counts)
	if object != nil {
		t.tell(object, eventInvalid, counts+": "+err.Error())
	}
	return awake
}

// warn logs what is odd about a ConfigMap.
func warn(log klog.Logger, warnings []string) {
	for _, w := range warnings {
		log.Info("An entry of the ConfigMap has no effect, or looks like a mistake", "warning", w)
	}
}
