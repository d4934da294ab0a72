package load_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	appsv1 "k8s.io/api/apps/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
)

// While pods are replaced there are more of them than asked for, and the load falls
// besides. None goes before all of them are new; nor are more asked for because those
// that are replaced show nothing.
func nothingGoesWhilePodsAreReplaced(t *testing.T, w *world) {
	s := w.site(t, "llama")
	x := s.target(t, plan{
		name: "server", model: "llama", instance: brisk, kind: "a30", replicas: 4, held: true,
		adjust: func(d *appsv1.Deployment, _ *v1alpha1.VariantAutoscaling) {
			d.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{
				MaxSurge: ptr.To(intstr.FromString("50%")), MaxUnavailable: ptr.To(intstr.FromInt32(0)),
			}
		},
	})
	load := s.clients(t, "llama")
	x.steady(t, load, ofFour)
	recorded := x.watchWrites(t)

	// Slow enough for the load to be seen to fall before the first new pod serves, which
	// would be another reason to keep all for a while.
	w.patch(t, x.deployment, fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{%q:"12s"}}}}}`, startupAnnotation))
	load.ask(0.5)
	var said []string
	eventually(t, 2*patience, "the end of the update", func() (string, bool) {
		_, text := x.asks(t)
		if limited := apimeta.FindStatusCondition(x.variant.Status.Conditions, v1alpha1.ConditionScalingLimited); limited != nil {
			said = append(said, limited.Reason+": "+limited.Message+" / "+x.variant.Status.Decision.Message)
		}
		return text + "\n" + recorded.String(), isSettled(x.deployment) || len(recorded.seen()) > 0
	})
	x.comesToAsk(t, patience, "fewer", below(4))
	said = slices.Compact(said)
	assert.True(t, slices.ContainsFunc(said, func(one string) bool { return strings.HasPrefix(one, "RollingUpdate: ") }),
		"it is said what keeps the replicas:\n%s", strings.Join(said, "\n"))
	for _, one := range recorded.seen() {
		assert.Less(t, one.to, one.from, "only fewer are asked for:\n%s", recorded)
	}
	assert.True(t, recorded.seen()[0].settled, "none goes before all pods are new:\n%s", recorded)
}
