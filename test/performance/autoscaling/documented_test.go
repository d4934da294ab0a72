package autoscaling

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/test/performance/front"
)

// The numbers that a run is compared with are those of the page.
func TestTheDocumentedNumbersAreThoseOfThePage(t *testing.T) {
	page, err := os.ReadFile("../../../docs/benchmarks.md")
	require.NoError(t, err)
	cells := regexp.MustCompile(`^([\d.]+) ± ([\d.]+) % at `)
	ratios := regexp.MustCompile(`^(\d\.\d\d) ± (\d\.\d\d)$`)
	number := func(text string) float64 {
		value, err := strconv.ParseFloat(text, 64)
		require.NoError(t, err)
		return value
	}
	for _, d := range pageOfRatios {
		found := 0
		for line := range strings.Lines(string(page)) {
			columns := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
			first := strings.TrimSpace(columns[0])
			if first != d.row && !strings.HasPrefix(first, d.row+":") || len(columns) < 3 {
				continue
			}
			kept := cells.FindStringSubmatch(strings.TrimSpace(columns[1]))
			if kept == nil {
				continue
			}
			found++
			assert.Equal(t, []float64{d.attainment, d.attainmentNoise}, []float64{number(kept[1]), number(kept[2])}, d.row)
			for _, column := range columns[2:] {
				if ratio := ratios.FindStringSubmatch(strings.TrimSpace(column)); ratio != nil {
					assert.Equal(t, []float64{d.ratio, d.ratioNoise}, []float64{number(ratio[1]), number(ratio[2])}, d.row)
					break
				}
			}
		}
		assert.Equal(t, 1, found, d.row)
	}
}

// Every documented case is one of the trials, and only the two variations in prose are not compared.
func TestTheDocumentedCasesAreTrials(t *testing.T) {
	missing := map[string]bool{}
	known := map[string]bool{}
	for _, d := range pageOfRatios {
		known[d.trial+d.startup.String()] = true
	}
	for _, one := range trials() {
		for _, startup := range one.startups {
			if key := one.String() + startup.String(); known[key] {
				delete(known, key)
			} else {
				missing[one.String()] = true
			}
		}
	}
	assert.Empty(t, known)
	assert.Equal(t, map[string]bool{"azure-conversation lowest roomy": true, "azure-conversation-in-bursts aws roomy": true}, missing)
}

func TestWhatIsWorseThanThePage(t *testing.T) {
	for name, tc := range map[string]struct {
		attainment, noise float64
		ratio, ratioNoise float64
		place             front.Place
		want              string
	}{
		"as the page says, dearer than the front": {0.95, 0.015, 1.05, 0.002, front.Within, ""},
		"better":                     {0.99, 0.001, 0.9, 0.002, front.Within, ""},
		"dearer within the noise":    {0.95, 0.015, 1.06, 0.02, front.Within, ""},
		"dearer":                     {0.95, 0.015, 1.2, 0.01, front.Within, "costs 1.200 ± 0.010 of the front, the page says 1.05 ± 0.00"},
		"no rival attains so little": {0.95, 0.015, 1.2, 0.01, front.Below, "costs at least 1.200 ± 0.010 of the front, the page says 1.05 ± 0.00"},
		"no rival attains so much":   {0.95, 0.015, 1.2, 0.01, front.Above, ""},
		"attains less":               {0.85, 0.01, 1.05, 0.002, front.Within, "attains 85.0 %, the page says 95.0 ± 1.5 %"},
		"both": {
			0.85, 0.01, 1.2, 0.01, front.Within,
			"attains 85.0 %, the page says 95.0 ± 1.5 %; costs 1.200 ± 0.010 of the front, the page says 1.05 ± 0.00",
		},
	} {
		t.Run(name, func(t *testing.T) {
			v := front.Verdict{Own: front.Point{Attainment: tc.attainment}, Ratio: tc.ratio, Noise: tc.ratioNoise, Place: tc.place, Seeds: 3}
			d := pageOfRatios[0]
			assert.Equal(t, tc.want, d.against("it", &v, tc.noise).Worse)
		})
	}
}

// A distance that is as documented is no failure; a worse one is, and so is what must hold.
func TestWhenARunFails(t *testing.T) {
	at := func(ratio float64) *bench {
		b := made(map[part][]float64{single: {ratio}})
		b.cases[0].trial = trials()[0]
		b.cases[0].Startup = time.Minute
		b.claims, b.compared = claims(b), b.compare()
		return b
	}
	b := at(1.05)
	require.Len(t, b.compared, 1)
	assert.Equal(t, front.Fails, b.claims[0].Answer, "the aim is missed")
	require.NoError(t, b.failure(), "as the page says")

	b = at(1.3)
	require.ErrorIs(t, b.failure(), errWorse)
	assert.NotErrorIs(t, b.failure(), errBroken)
	var out strings.Builder
	b.print(&out)
	assert.Contains(t, out.String(), "\nhybrid against docs/benchmarks.md: worse in 1 of 1 cases\n   trace, start-up 60 s: costs 1.300 ")

	b = made(map[part][]float64{several: {0.7}})
	b.cases[0].trial.cluster = full
	b.reports[0].Ours[0].Results[0].UnplaceableReplicas = 1
	b.claims, b.compared = claims(b), b.compare()
	assert.Empty(t, b.compared)
	require.ErrorIs(t, b.failure(), errBroken)
	out.Reset()
	b.print(&out)
	assert.Contains(t, out.String(), "\ndocs/benchmarks.md has none of these cases\n")
}
