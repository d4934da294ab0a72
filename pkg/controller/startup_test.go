package controller

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"

	"llmd.ai/workload-variant-autoscaler/pkg/round"
)

func TestWhatPodsTellOfStartups(t *testing.T) {
	ready := server("a", 90, readyAfter(30))
	told := round.Replica{ID: string(ready.UID), Created: noon.Add(-90 * time.Second), Ready: noon.Add(-60 * time.Second)}
	unready, restarted, ends := told, told, told
	unready.Ready = time.Time{}
	restarted.Restarted, ends.Ends = true, true
	for name, c := range map[string]struct {
		pod  *corev1.Pod
		want round.Replica
	}{
		"ready":                       {ready, told},
		"not ready":                   {server("a", 90), unready},
		"its container was restarted": {server("a", 90, readyAfter(30), restartedOnce), restarted},
		"it failed":                   {server("a", 90, readyAfter(30), func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }), ends},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, []round.Replica{c.want}, startsOf([]*corev1.Pod{c.pod})) })
	}
}
