package replay

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSpecsHaveOneSpelling(t *testing.T) {
	for _, c := range []struct {
		text, family, want string
		parameters         []Parameter
	}{
		{"hybrid", "hybrid", "hybrid", nil},
		{"static:3", "static", "static:3", []Parameter{{"replicas", "3"}}},
		{"hpa:rps=4.5", "hpa:rps", "hpa:rps=4.5", []Parameter{{"rps", "4.5"}}},
		{"hpa:rps=4.50,down=1m", "hpa:rps", "hpa:rps=4.5,down=60s", []Parameter{{"rps", "4.5"}, {"down", "60s"}}},
		{"hpa:max=40,tolerance=0.10,min=2,rps=5e3", "hpa:rps", "hpa:rps=5000,min=2,max=40,tolerance=0.1",
			[]Parameter{{"rps", "5000"}, {"min", "2"}, {"max", "40"}, {"tolerance", "0.1"}}},
		{"hpa:queue", "hpa:queue", "hpa:queue", nil},
		{"hpa:queue,down=60s", "hpa:queue", "hpa:queue,down=60s", []Parameter{{"down", "60s"}}},
		{"hpa:queue=5", "hpa:queue", "hpa:queue=5", []Parameter{{"queue", "5"}}},
		{"hpa:kv", "hpa:kv", "hpa:kv", nil},
		{"hpa:intok=5000+800,max=9+4", "hpa:intok", "hpa:intok=5000+800,max=9+4", []Parameter{{"intok", "5000+800"}, {"max", "9+4"}}},
		{"hpa:inflight=30,variant=a+b", "hpa:inflight", "hpa:inflight=30,variant=a+b", []Parameter{{"inflight", "30"}, {"variant", "a+b"}}},
		{"keda", "keda:queue", "keda", nil},
		{"keda:queue", "keda:queue", "keda", nil},
		{"keda:down=0s", "keda:queue", "keda:down=0s", []Parameter{{"down", "0s"}}},
		{"keda:polling=5s,cooldown=60s,activation=1.50,min=0", "keda:queue", "keda:min=0,polling=5s,cooldown=60s,activation=1.5",
			[]Parameter{{"min", "0"}, {"polling", "5s"}, {"cooldown", "60s"}, {"activation", "1.5"}}},
		{"static:3+1,variant=a+b", "static", "static:3+1,variant=a+b", []Parameter{{"replicas", "3+1"}, {"variant", "a+b"}}},
		{"static:split=a:4+b:2", "static", "static:split=a:4+b:2", []Parameter{{"split", "a:4+b:2"}}},
		{"hybrid:down=2m", "hybrid", "hybrid:down=120s", []Parameter{{"down", "120s"}}},
		{"hybrid:WVA-SWITCH-HORIZON=10m,risk=0.9,down=0s", "hybrid", "hybrid:down=0s,risk=0.9,wva_switch_horizon=10m",
			[]Parameter{{"down", "0s"}, {"risk", "0.9"}, {"wva_switch_horizon", "10m"}}},
		{"keda:kv=0.7", "keda:kv", "keda:kv=0.7", []Parameter{{"kv", "0.7"}}},
	} {
		got, err := ParseSpec(c.text)
		require.NoError(t, err, c.text)
		assert.Equal(t, Spec{Family: c.family, Parameters: c.parameters}, got, c.text)
		assert.Equal(t, c.want, got.String(), c.text)
		again, err := ParseSpec(got.String())
		require.NoError(t, err, c.text)
		assert.Equal(t, got, again, c.text)
	}
}

func TestWhatIsNoSpec(t *testing.T) {
	for text, want := range map[string]string{
		"best":                        `unknown policy "best"; expected one of capacity-only, hybrid,`,
		"":                            `unknown policy ""; expected one of`,
		"static":                      `unknown policy "static"; expected one of`,
		"hpa":                         `policy "hpa": it has no trigger; expected rps, intok, inflight, queue or kv`,
		"hpa:":                        `policy "hpa:": "" is not known; expected rps, intok, inflight, queue, kv, down,`,
		"hpa:down=60s":                `it has no trigger; expected rps, intok, inflight, queue or kv`,
		"hpa:rps":                     `policy "hpa:rps": rps has no value; expected requests per second of one replica, above 0, or one number for each model with + between them, such as rps=4.5`,
		"hpa:rps=":                    `rps is ""; expected requests per second of one replica`,
		"hpa:rps=0":                   `rps is "0"; expected requests per second of one replica, above 0`,
		"hpa:rps=-1":                  `rps is "-1"; expected`,
		"hpa:rps=NaN":                 `rps is "NaN"; expected`,
		"hpa:rps=4+x":                 `rps is "4+x"; expected`,
		"hpa:rps=4,kv=0.8":            `rps and kv are both triggers; expected one of them`,
		"hpa:rps=4,rps=5":             `rps is there twice; expected once`,
		"hpa:rps=4,down=60s,down=60s": `down is there twice; expected once`,
		"hpa:rps=4,down=60":           `down is "60"; expected the stabilisation window of scaling down in whole seconds, up to 3600s, such as 60s`,
		"hpa:rps=4,down=1500ms":       `down is "1500ms"; expected`,
		"hpa:rps=4,down=2h":           `down is "2h"; expected`,
		"hpa:rps=4,down":              `down has no value; expected the stabilisation window`,
		"hpa:rps=4,min=0":             `min is "0"; expected the least replicas, from 1`,
		"hpa:rps=4,max=+3":            `max is "+3"; expected the most replicas`,
		"hpa:rps=4,tolerance=2":       `tolerance is "2"; expected the share`,
		"hpa:rps=4,speed=2":           `"speed" is not known; expected rps, intok, inflight, queue, kv, down, up, min, max, tolerance, window, variant or split`,
		"hpa:rps=4,variant=":          `variant is ""; expected the name of the variant`,
		"static:03+1":                 `"03+1" is no number of replicas; expected 0 to 100000`,
		"static:3,split=a":            `split is "a"; expected replicas of variants, such as cheap:4+dear:2`,
		"static:3,4":                  `"4" is not known; expected replicas, variant or split`,
		"hpa:rps=4,split=a:-1":        `split is "a:-1"; expected replicas of other variants`,
		"hybrid:down":                 `down has no value; expected stabilizationWindowSeconds`,
		"hybrid:":                     `"" is not known; expected down, up or a setting of the manager's configuration`,
		"hybrid:risk=":                `risk is ""; expected a setting of the manager's configuration`,
		"keda:min=-1":                 `min is "-1"; expected the least replicas, from 0`,
		"peak:":                       `"" is not known; expected no settings`,
	} {
		_, err := ParseSpec(text)
		assert.ErrorContains(t, err, want, text)
	}
}

func TestSpecWithAnotherValue(t *testing.T) {
	spec, err := ParseSpec("hpa:rps=4")
	require.NoError(t, err)
	for _, c := range []struct{ key, value, want string }{
		{"down", "60s", "hpa:rps=4,down=60s"}, {"rps", "5", "hpa:rps=5"}, {"max", "7", "hpa:rps=4,max=7"},
	} {
		changed, err := spec.With(c.key, c.value)
		require.NoError(t, err)
		assert.Equal(t, c.want, changed.String())
	}
	assert.Equal(t, "hpa:rps=4", spec.String(), "the first one is as it was")
	_, err = spec.With("speed", "7")
	require.ErrorContains(t, err, `"speed" is not known`)

	keda, err := ParseSpec("keda")
	require.NoError(t, err)
	keda, err = keda.With("queue", "3")
	require.NoError(t, err)
	assert.Equal(t, "keda:queue=3", keda.String())
	assert.Equal(t, KindBaseline, keda.Kind())
}

func TestSettingsInAList(t *testing.T) {
	for _, c := range []struct{ parts, want []string }{
		{[]string{"hybrid", "peak"}, []string{"hybrid", "peak"}},
		{[]string{"hybrid", "hpa:rps=4.5", " down=60s", "max=9", "keda"}, []string{"hybrid", "hpa:rps=4.5,down=60s,max=9", "keda"}},
		{[]string{"hpa:queue", "down=60s", "hpa:kv=0.7"}, []string{"hpa:queue,down=60s", "hpa:kv=0.7"}},
		{[]string{"keda", "down=60s"}, []string{"keda:down=60s"}},
		{[]string{"down=60s", "hybrid"}, []string{"down=60s", "hybrid"}},
		{[]string{"hpa:rps=4.5,down=60s", "hybrid"}, []string{"hpa:rps=4.5,down=60s", "hybrid"}},
	} {
		assert.Equal(t, c.want, JoinPolicies(c.parts))
	}
}

// Settings have an effect on what the HPA does.
func TestSettingsOfHPA(t *testing.T) {
	two := func(name string) ([]string, Policy) {
		y := newToy([]int{2}, toyVariant("a", 5, 0, -1))
		y.inFlight = until(5*time.Minute, 60, 12)
		p := baseline(t, name, y.scenario, 0)
		return y.play(p, 12*time.Minute), p
	}
	plain, _ := two("hpa:inflight=10")
	assert.Equal(t, []string{"0s [4]", "15s [6]", "10m0s [2]"}, plain)
	for name, want := range map[string][]string{
		"hpa:inflight=20":                {"0s [3]", "10m0s [1]"},
		"hpa:inflight=10,down=60s":       {"0s [6]", "5m45s [2]"},
		"hpa:inflight=10,up=30s":         {"30s [6]", "9m45s [2]"},
		"hpa:inflight=10,min=3,max=4":    {"0s [3]", "15s [4]", "10m0s [3]"},
		"hpa:inflight=28":                {"10m0s [1]"},
		"hpa:inflight=28,tolerance=0.05": {"0s [3]", "9m45s [1]"},
		"hpa:inflight=25,tolerance=0.5":  {"9m45s [1]"},
	} {
		got, _ := two(name)
		assert.Equal(t, want, got, name)
	}
	_, p := two("hpa:inflight=10,down=60s,max=4")
	assert.Contains(t, p.Parameters(), Parameter{"scaleDown", "window 1m0s, 100% per 15s"})
	assert.Contains(t, p.Parameters(), Parameter{"maxReplicas", "4"})
	assert.Contains(t, p.Parameters(), Parameter{"targetAverageValue", "10"})
}

// Whatever can be set is taken over, and shown to people.
func TestEverySettingIsTakenOver(t *testing.T) {
	y := newToy([]int{1, 1}, toyVariant("a", 5, 0, -1), toyVariant("b", 9, 0, -1))
	beside := map[string]string{
		"keda polling": "min=0", "keda cooldown": "min=0", "keda activation": "min=0",
		"hpa *": "rps=4", "keda window": "rps=4", "static variant": "replicas=3",
	}
	values := map[string]string{
		"down": "77s", "up": "77s", "min": "2", "max": "77", "tolerance": "0.77", "window": "77s", "variant": "b", "split": "b:7", "polling": "77s",
		"cooldown": "77s", "activation": "77", "replicas": "7",
	}
	parameters := func(text string) []Parameter {
		p := play{Trial: &Trial{scenario: y.scenario, choice: []int{0}}, policy: text}
		policy, err := p.newPolicy()
		require.NoError(t, err, text)
		return policy.Parameters()
	}
	for _, f := range families {
		for _, s := range f.Settings {
			require.Contains(t, values, s.Key)
			before := f.Name
			if more, ok := beside[f.Name+" "+s.Key]; ok {
				before += ":" + more
			} else if more, ok := beside[f.Name+" *"]; ok {
				before += ":" + more
			} else if f.bare != "" {
				before += ":3"
			}
			plain, err := ParseSpec(strings.Replace(before, "replicas=", "", 1))
			require.NoError(t, err, before)
			set, err := plain.With(s.Key, values[s.Key])
			require.NoError(t, err)
			assert.NotEqual(t, parameters(plain.String()), parameters(set.String()), set.String())
		}
	}
}

func TestSettingsThatDoNotFitTheScenario(t *testing.T) {
	y := newToy([]int{1, 1}, toyVariant("a", 5, 2, 8), toyVariant("b", 9, 0, -1))
	for text, want := range map[string]string{
		"hpa:rps=4+5":                   `policy "hpa:rps=4+5": rps has 2 values, and the scenario 1 models; expected one value, or one for each model`,
		"hpa:rps=4,variant=c":           `policy "hpa:rps=4,variant=c": variant: no variant is named c; expected one of a, b`,
		"hpa:rps=4,variant=a+b":         `variants a and b both serve model toy; expected one variant of a model`,
		"hpa:rps=4,min=1":               `min is 1 for variant a; expected at least its own minReplicas of 2`,
		"hpa:rps=4,max=1":               `max is 1 for variant a; expected at least its minimum of 2`,
		"hpa:rps=4,max=9":               `9 replicas are allowed of variant a; expected at most its own maxReplicas of 8`,
		"keda:rps=4,min=5,max=4":        `max is 4 for variant a; expected at least its minimum of 5`,
		"keda:queue=4,variant=c/a":      `no variant is named c/a; expected one of a, b`,
		"hpa:rps=4,split=c:1":           `split: no variant is named c; expected one of a, b`,
		"hpa:rps=4,split=a:3":           `split has variant a, which is the driven one; expected others`,
		"hpa:rps=4,split=b:1+b:2":       `split has variant b twice; expected once`,
		"hpa:rps=4,variant=b,split=a:9": `split has 9 replicas of variant a; expected 2 to 8, as its own bounds say`,
		"static:2,split=a:3":            `split has variant a, which is the driven one`,
		"hpa:kv,window=60s":             `window has no effect on kv, which is that of the last scrape; expected it with rps or intok`,
		"static:2+3":                    `replicas has 2 values, and the scenario 1 models`,
	} {
		_, err := newBaseline(text, y.scenario, []int{0})
		assert.ErrorContains(t, err, want, text)
	}
	p := baseline(t, "hpa:rps=4,variant=b,max=50", y.scenario, 0)
	assert.Contains(t, p.Parameters(), Parameter{"variant", "b"})
}

// spec is a policy that people write so.
func spec(t *testing.T, text string) Spec {
	t.Helper()
	s, err := ParseSpec(text)
	require.NoError(t, err)
	return s
}
