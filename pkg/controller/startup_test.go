package controller

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

var startupKey = decision.Key{Namespace: "n", Name: "v"}

// lookedAt are the start-ups after one look at the pods.
func (s *startups) lookedAt(now time.Time, pods ...*corev1.Pod) time.Duration {
	s.begin(now)
	took := s.of(startupKey, pods, 10*time.Minute)
	s.forget(map[decision.Key]*variant{startupKey: {}})
	return took
}

func TestStartupSeen(t *testing.T) {
	var many []*corev1.Pod
	for i := range 20 {
		// The older half started slowly.
		many = append(many, server("p"+string(rune('a'+i)), 1000-50*i, readyAfter(map[bool]int{true: 60, false: 20}[i < 10])))
	}
	long := noon.Add(-24 * time.Hour)
	cases := []struct {
		name  string
		since time.Time
		pods  []*corev1.Pod
		want  time.Duration
	}{
		{"none is ready", long, []*corev1.Pod{server("a", 90)}, 0},
		{"one", long, []*corev1.Pod{server("a", 90, readyAfter(30))}, 30 * time.Second},
		{"the median", long, []*corev1.Pod{server("a", 90, readyAfter(30)), server("b", 90, readyAfter(31)), server("c", 90, readyAfter(80))}, 31 * time.Second},
		{"one that was restarted shows another readiness", long, []*corev1.Pod{server("a", 90, readyAfter(30)), server("b", 9000, readyAfter(8000), restartedOnce)}, 30 * time.Second},
		{"the clock was set back", long, []*corev1.Pod{server("a", 90, readyAfter(-3))}, 0},
		{"the latest count", long, many, 20 * time.Second},
		{"a long start that was watched", long, []*corev1.Pod{server("a", 9000, readyAfter(8000))}, 8000 * time.Second},
		{"a long one that nobody watched is none", noon, []*corev1.Pod{server("a", 9000, readyAfter(8000))}, 0},
		{"a plausible one that nobody watched", noon, []*corev1.Pod{server("a", 9000, readyAfter(1700))}, 1700 * time.Second},
		{"what was watched beats what was not", noon.Add(-100 * time.Second),
			[]*corev1.Pod{server("a", 9000, readyAfter(1700)), server("b", 9000, readyAfter(1600)), server("c", 90, readyAfter(30))}, 30 * time.Second},
		{"pods that end teach nothing", long, []*corev1.Pod{server("a", 90, readyAfter(30), func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed })}, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := newStartups()
			s.begin(c.since)
			assert.Equal(t, c.want, s.lookedAt(noon, c.pods...))
		})
	}
}

func TestAPodThatIsReadyAgainTeachesNothingNew(t *testing.T) {
	s := newStartups()
	s.begin(noon.Add(-time.Hour))
	assert.Equal(t, 30*time.Second, s.lookedAt(noon, server("a", 600, readyAfter(30))))
	assert.Equal(t, 30*time.Second, s.lookedAt(noon, server("a", 600)), "not ready for a while")
	assert.Equal(t, 30*time.Second, s.lookedAt(noon, server("a", 600, readyAfter(590))), "its first readiness counts")
	assert.Equal(t, 30*time.Second, s.lookedAt(noon, server("a", 600, readyAfter(30), restartedOnce)), "what was seen before its restart stays")
	assert.Equal(t, 30*time.Second, s.lookedAt(noon), "without pods the last one seen stays")
	assert.Empty(t, s.first, "and nothing is kept of pods that are gone")
	s.forget(nil)
	assert.Empty(t, s.last, "nor of variants")
}
