package decision

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// story writes down the rounds of a fluid world in which something changes, or the
// reason for what there is: one line for each variant, with the step that settled it.
type story struct {
	text strings.Builder
	last map[Key]string
}

func tell(f *fluid) *story {
	s := &story{last: map[Key]string{}}
	f.told = func(in *Snapshot, plan *Plan) { s.listen(in, plan) }
	return s
}

func (s *story) listen(in *Snapshot, plan *Plan) {
	for i := range plan.Models {
		m := &plan.Models[i]
		var lines []string
		news := false
		for j := range m.Variants {
			v := &m.Variants[j]
			// That only a full round lowers is no news.
			if v.Reason != ReasonRoundMayNotLower {
				state := fmt.Sprint(*v.Desired, v.Reason, v.Fallback != nil)
				news = news || state != s.last[v.Key]
				s.last[v.Key] = state
			}
			lines = append(lines, lineOf(v))
		}
		if news {
			fmt.Fprintf(&s.text, "%s %-5s %s: %s\n%s", clock(in.Time), plan.Round, m.ID, demandOf(m.Demand), strings.Join(lines, ""))
		}
	}
}

func clock(t time.Time) string {
	d := t.Sub(epoch)
	return fmt.Sprintf("%d:%02d:%02d", int(d.Hours()), int(d.Minutes())%60, int(d.Seconds())%60)
}

func demandOf(d *Demand) string {
	if d == nil {
		return "nobody knows what arrives"
	}
	return fmt.Sprintf("%.1f requests/s arrive, %.1f are expected, %.0f wait and %.0f will", d.Arrival, d.Forecast, d.Backlog, d.BacklogAtReady)
}

func lineOf(v *VariantPlan) string {
	change := fmt.Sprintf("%d", v.Current)
	if *v.Desired != v.Current {
		change = fmt.Sprintf("%d -> %d", v.Current, *v.Desired)
	}
	settled := ""
	for _, step := range v.Steps {
		if step.Reason == v.Reason {
			settled = string(step.Stage) + " "
		}
	}
	line := fmt.Sprintf("    %-8s %-8s (%d ready)  %s%s: %s\n", v.Key.Name, change, v.Ready, settled, v.Reason, textOf(v.Message))
	if f := v.Fallback; f != nil {
		line += fmt.Sprintf("    %-8s shows %d (%s), because %s\n", "", f.Replicas, f.Source, textOf(f.Why))
	}
	return line
}

// is compares the story with testdata/name.txt.
func (s *story) is(t *testing.T, name string) {
	t.Helper()
	file := filepath.Join("testdata", name+".txt")
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(s.text.String()), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, string(want), s.text.String(), "run this test with -update and read the difference")
}
