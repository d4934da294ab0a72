package decision

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
)

var update = flag.Bool("update", false, "write the transcripts instead of comparing with them")

// Each transcript is one story, told round by round: what was seen, what each stage
// made of it, and what is asked for.
func TestTranscripts(t *testing.T) {
	for name, tell := range map[string]func(*transcript){
		"a-ramp-and-its-end":  aRampAndItsEnd,
		"nothing-more-fits":   nothingMoreFits,
		"the-metrics-go-away": theMetricsGoAway,
	} {
		t.Run(name, func(t *testing.T) {
			s := &transcript{policy: demoPolicy()}
			tell(s)
			file := filepath.Join("testdata", name+".txt")
			if *update {
				require.NoError(t, os.WriteFile(file, []byte(s.text.String()), 0o644))
			}
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			assert.Equal(t, string(want), s.text.String(), "run this test with -update and read the difference")
		})
	}
}

type transcript struct {
	text   strings.Builder
	policy Policy
	memory Memory
	start  time.Time
}

// say decides on the world, acts, and writes down how.
func (s *transcript) say(w *world, snapshot Snapshot) {
	if s.start.IsZero() {
		s.start = w.now
	}
	plan, memory := Decide(snapshot, s.policy, s.memory, RoundFull)
	s.memory = memory
	fmt.Fprintf(&s.text, "at %.0f s\n", w.now.Sub(s.start).Seconds())
	for _, v := range plan.Models[0].Variants {
		fmt.Fprintf(&s.text, "  %s (%s): %d -> %d, %s: %s\n", v.Key.Name, v.Accelerator, v.Current, *v.Desired, v.Reason, textOf(v.Message))
		for _, step := range v.Steps {
			fmt.Fprintf(&s.text, "    %-12s %d -> %d  %s: %s\n", step.Stage, step.Before, step.After, step.Reason, textOf(step.Detail))
		}
	}
	w.apply(plan)
	w.now = w.now.Add(15 * time.Second)
}

func aRampAndItsEnd(s *transcript) {
	w := newWorld(5)
	w.cluster = &placement.Cluster{Nodes: append(nodes(2, "H100", 8), nodes(4, "L40S", 4)...)}
	s.policy.Limited = true
	for _, arrival := range []float64{5, 12, 24, 24, 60, 60, 2, 2, 2, 2} {
		w.arrival = arrival
		s.say(w, w.snapshot())
	}
}

func nothingMoreFits(s *transcript) {
	w := newWorld(118)
	w.cluster = &placement.Cluster{Nodes: append(nodes(1, "H100", 1), nodes(2, "L40S", 3)...)}
	s.policy.Limited = true
	s.say(w, w.snapshot())
}

func theMetricsGoAway(s *transcript) {
	w := newWorld(10)
	w.setReplicas(0, 3)
	w.now = w.now.Add(time.Hour)
	s.say(w, w.snapshot())
	seen := w.snapshot()
	for range 3 {
		w.now = w.now.Add(75 * time.Second)
		seen.Time = w.now
		s.say(w, seen)
	}
}
