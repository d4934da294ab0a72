package adopt

import (
	"fmt"
	"strconv"
	"strings"
)

// KEDA's annotations by which people hold a ScaledObject.
const (
	annotationPaused         = "autoscaling.keda.sh/paused"
	annotationPausedReplicas = "autoscaling.keda.sh/paused-replicas"
	annotationPausedIn       = "autoscaling.keda.sh/paused-scale-in"
	annotationPausedOut      = "autoscaling.keda.sh/paused-scale-out"
)

// pauses say what a ScaledObject does not do because of its annotations, and what that means for the
// Deployment that is adopted.
func pauses(name string, annotations map[string]string) (notes []string) {
	say := func(annotation, means string) {
		notes = append(notes, fmt.Sprintf("ScaledObject %s is held by its annotation %s: %s", name, annotation, means))
	}
	const whole = "Held or not, an object with actuation Scale says Conflict and writes nothing while it is there: leave the annotation on, " +
		"and delete it in the last step. With actuation Metric take the annotation away, because it acts on no metric before"
	replicas, fixed := annotations[annotationPausedReplicas]
	switch {
	case fixed:
		say(annotationPausedReplicas, fmt.Sprintf("it keeps the Deployment at %s replicas whatever the load is, and shadow compares with those. %s", strings.TrimSpace(replicas), whole))
		return notes
	case holds(annotations, annotationPaused):
		say(annotationPaused, "nothing scales the Deployment, whatever the load is, and shadow compares with the replicas that it was left at. "+whole)
		return notes
	}
	if holds(annotations, annotationPausedIn) {
		say(annotationPausedIn, "it removes no replicas. The object has no such bound: to keep it, set spec.behavior.scaleDown.selectPolicy to Disabled")
	}
	if holds(annotations, annotationPausedOut) {
		say(annotationPausedOut, "it adds no replicas. The object has no such bound: to keep it, set spec.behavior.scaleUp.selectPolicy to Disabled")
	}
	return notes
}

// holds reads an annotation as KEDA does: what is no boolean is meant as true.
func holds(annotations map[string]string, name string) bool {
	value, given := annotations[name]
	on, err := strconv.ParseBool(value)
	return given && (on || err != nil)
}
