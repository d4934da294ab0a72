package acceleratorplacement

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"
)

// Pods go to devices of which no label says anything where pods of their variant hold some
// already, and nobody else's do.
func TestPodsGoWhereTheirVariantHoldsDevicesWithoutLabels(t *testing.T) {
	rs, otherRS := deployed("v"), deployed("w")
	w := newWorld(t, []runtime.Object{rs, otherRS}, variant("v", "H100", 0), variant("w", "H100", 0))
	own := gpuPod("own", 2, rs)
	own.Spec.NodeName = "unlabelled"
	unlabelled := node("unlabelled", "", 8, 2)
	unlabelled.pods = append(unlabelled.pods, podInfos(own)...)
	nodes := []fwk.NodeInfo{unlabelled, node("empty", "", 8, 0), node("labelled", h100, 8, 8), node("cpu", "", 0, 0)}
	for _, c := range []struct {
		pod  string
		of   metav1.Object
		want []string
	}{{"p", rs, []string{"unlabelled"}}, {"q", otherRS, nil}} {
		feasible, _ := w.schedule(t, gpuPod(c.pod, 2, c.of), nodes...)
		assert.Equal(t, c.want, feasible, c.pod)
	}

	// Of a node that is full the pod's event says that, and not that it has no label.
	unlabelled.requested.scalars[gpu] = 8
	w.handle.nodes = nodes
	pod, state := gpuPod("p", 2, rs), newState()
	_, status := w.PreFilter(context.Background(), state, pod, nodes)
	require.True(t, status.IsSuccess())
	_, status = w.PostFilter(context.Background(), state, pod, nil)
	assert.Equal(t, "wants 2xH100: 2 H100 nodes have fewer than 2 free (largest hole 0), 1 node is of another type, 1 has no product label", status.Message())
}
