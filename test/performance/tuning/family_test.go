package tuning

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheSeriesOfPreferredNumbers(t *testing.T) {
	// Of IEC 60063, E48: 100, 105, 110, 115, 121, 127, 133, ...
	assert.Equal(t, []float64{1, 1.05, 1.1, 1.15, 1.21, 1.27, 1.33}, series(1, 1.35))
	assert.Equal(t, []float64{9.53, 10, 10.5}, series(9.5, 10.5))
	wide := series(0.01, 1e6)
	assert.Len(t, wide, 8*48+1)
	assert.True(t, slices.IsSorted(wide))
}

func TestAxesGoFromManyReplicasToFew(t *testing.T) {
	for _, f := range slices.Concat(Families(), Aside()) {
		require.NotEmpty(t, f.Axis, f.Name)
		require.NotEmpty(t, f.Lines, f.Name)
		assert.Empty(t, f.Lines[0], "%s: the first line is that of the defaults", f.Name)
		if len(f.Axis) == 1 {
			continue
		}
		rises := f.Axis[0] < f.Axis[len(f.Axis)-1]
		falls := []string{"static", "saturation-v1", "hybrid"}
		assert.Equal(t, !slices.Contains(falls, f.Name), rises, "%s: a larger target has fewer replicas; a larger fleet or trigger of spare room more", f.Name)
	}
}

func TestFamiliesAreFoundByTheirNames(t *testing.T) {
	for _, f := range slices.Concat(Families(), Aside()) {
		found, err := Named(f.Name)
		require.NoError(t, err)
		assert.Equal(t, f.Name, found.Name)
	}
	_, err := Named("magic")
	assert.ErrorContains(t, err, `"magic" cannot be tuned; expected one of hpa:rps, hpa:intok, `)
}

func place(t *testing.T, f Family, value float64) int {
	t.Helper()
	at := slices.Index(f.Axis, value)
	require.GreaterOrEqual(t, at, 0)
	return at
}

func TestHowSettingsAreWritten(t *testing.T) {
	one := []LoadTest{{Rate: 5, Input: 1000, InFlight: 20, Peak: 31}}
	three := []LoadTest{{Rate: 5, Input: 1000, InFlight: 20, Peak: 8}, {Rate: 10, Input: 500, InFlight: 20, Peak: 8}, {Rate: 5, Input: 1000, InFlight: 20, Peak: 2}}
	few := []LoadTest{{Rate: 5, Input: 1000, InFlight: 20, Peak: 3}}
	kept := []LoadTest{{Rate: 5, Input: 1000, InFlight: 20, Peak: 31, Least: 9}}
	for _, tc := range []struct {
		family  string
		value   float64
		line    int
		tests   []LoadTest
		placing string
		want    string
	}{
		{"hpa:rps", 3.83, 0, one, "", "hpa:rps=3.83"},
		{"hpa:rps", 3.83, 1, one, "", "hpa:rps=3.83,down=120s"},
		{"hpa:rps", 3.83, 2, three, "", "hpa:rps=3.83+7.66+3.83,down=60s"},
		{"hpa:rps", 3.83, 3, one, "", "hpa:rps=3.83,min=8"},
		{"hpa:rps", 3.83, 6, one, "variant=dear", "hpa:rps=3.83,min=16,variant=dear"},
		{"hpa:rps", 3.83, 6, three, "", "hpa:rps=3.83+7.66+3.83,min=4+4+1"},
		{"hpa:rps", 3.83, 8, one, "", "hpa:rps=3.83,down=60s,min=16"},
		{"hpa:rps", 3.83, 3, few, "", "hpa:rps=3.83"},
		{"hpa:rps", 3.83, 3, kept, "", "hpa:rps=3.83"},
		{"hpa:rps", 3.83, 6, kept, "", "hpa:rps=3.83,min=16"},
		{"planner", 26.1, 12, one, "", "planner:itl=26.1,min=16"},
		{"keda:intok", 5110, 0, three, "", "keda:intok=5110"},
		{"hpa:kv", 0.681, 0, three, "", "hpa:kv=0.681"},
		{"static", 12, 0, three, "", "static:12"},
		{"hpa:rps", 3.83, 0, one, "variant=dear", "hpa:rps=3.83,variant=dear"},
		{"hpa:rps", 3.83, 2, one, "variant=dear,split=cheap:4", "hpa:rps=3.83,down=60s,variant=dear,split=cheap:4"},
		{"saturation-v2", 0.85, 0, one, "", "saturation-v2:scaleUpThreshold=0.85,scaleDownBoundary=0.7"},
		{"hybrid", 0.9, 0, one, "", "hybrid:risk=0.9"},
		{"hybrid", 0.9, 2, one, "", "hybrid:risk=0.9,down=60s"},
		{"capacity-only", 0, 0, one, "", "capacity-only"},
		{"capacity-only", 0, 1, one, "", "capacity-only:down=120s"},
	} {
		f, err := Named(tc.family)
		require.NoError(t, err)
		assert.Equal(t, tc.want, f.Policy(Place{Line: tc.line, At: place(t, f, tc.value)}, Placing{tc.placing, tc.tests}))
	}
}

func TestWhereASearchBegins(t *testing.T) {
	tests := []LoadTest{{Rate: 5, Input: 1000, InFlight: 20}}
	for name, want := range map[string]float64{"hpa:rps": 4.02, "hpa:intok": 4020, "hpa:inflight": 16.2, "static": 20} {
		f, err := Named(name)
		require.NoError(t, err)
		assert.InDelta(t, want, f.Axis[f.Start(tests)], 1e-9, name)
	}
	f, err := Named("hpa:rps")
	require.NoError(t, err)
	assert.Equal(t, len(f.Axis)-1, f.Start([]LoadTest{{Rate: 1e9}}), "beyond the end it is the end")
}
