package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A rule whose function has another name now would be left out for ever.
func TestEveryRuleCanBeSwitchedOff(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for i := range rules {
		r := &rules[i]
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			code, err := os.ReadFile(filepath.Join("..", "..", r.cut.source()))
			require.NoError(t, err)
			changed, err := r.cut.apply(code)
			require.NoError(t, err)
			assert.NotEqual(t, string(code), string(changed))
			assert.NotEmpty(t, r.does)
		})
		assert.False(t, seen[r.name], "%s is there twice", r.name)
		seen[r.name] = true
	}
}

func TestACutSaysWhatItLooksFor(t *testing.T) {
	t.Parallel()
	code := []byte("package a\n\nconst most = 2\n\nfunc twice(n int) int { return n * most }\n")
	for name, c := range map[string]struct {
		cut  cut
		want string
	}{
		"a function": {cut{function: "twice", first: "return n"}, "func twice(n int) int {\n\treturn n\n\treturn n * most\n}"},
		"a constant": {cut{constant: "most", first: "1"}, "const most = 1\n"},
		"no such":    {cut{file: "a.go", function: "thrice", first: "return"}, `pkg/a.go has 0 of "thrice"`},
		"no Go":      {cut{file: "a.go", function: "twice", first: "return }"}, `pkg/a.go with "return }"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			changed, err := c.cut.apply(code)
			if err != nil {
				assert.ErrorContains(t, err, c.want)
				return
			}
			assert.Contains(t, string(changed), c.want)
		})
	}
}

func TestARuleBuysWhatIsBeyondTheNoise(t *testing.T) {
	t.Parallel()
	with := &measured{outcomes: [][]outcome{{{100, 0.99}, {100, 0.99}}, {{200, 0.98}, {200, 0.98}}}, failures: map[string]int{"dear": 1}}
	b := &bench{loads: []load{{name: "step"}, {name: "ramp"}}}
	for name, c := range map[string]struct {
		without *measured
		buys    bool
		most    string
		failed  string
	}{
		"nothing moves":      {with, false, "", "none"},
		"the cost moves":     {&measured{outcomes: [][]outcome{{{103, 0.99}, {103, 0.99}}, {{208, 0.98}, {208, 0.98}}}, failures: with.failures}, true, "ramp +4.0% +0.00", "none"},
		"noise moves":        {&measured{outcomes: [][]outcome{{{104, 0.99}, {97, 0.99}}, {{192, 0.98}, {206, 0.98}}}, failures: with.failures}, false, "step +0.5% +0.00", "none"},
		"a scenario fails":   {&measured{outcomes: with.outcomes, failures: map[string]int{"dear": 1, "cycle": 2}}, true, "", "cycle 2"},
		"one fails no more":  {&measured{outcomes: with.outcomes, failures: nil}, false, "", "none"},
		"the promise breaks": {&measured{outcomes: [][]outcome{{{100, 0.97}, {100, 0.97}}, {{200, 0.96}, {200, 0.96}}}, failures: with.failures}, true, "step +0.0% -2.00", "none"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := b.judge(&rules[0], c.without, with)
			assert.Equal(t, c.buys, v.buys(), "%+v", v)
			assert.Equal(t, c.most, v.most)
			assert.Equal(t, c.failed, v.failed())
		})
	}
}

func TestTheTableNamesWhatBuysNothing(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	require.NoError(t, write(&out, []verdict{
		{rule: &rules[0], cost: change{2, 0.1}, most: "step +4.0% +0.00"}, {rule: &rules[1]},
	}))
	assert.Equal(t, `WITHOUT        COST          MET THE SLO  SCENARIOS THAT FAIL  CHANGES MOST
switch-mix     +2.00% ±0.10  +0.00 ±0.00  none                 step +4.0% +0.00
switch-seldom  +0.00% ±0.00  +0.00 ±0.00  none                 nothing

Rules that buy nothing here. They stay only for a promise of the documentation or a fault that somebody reported:
  switch-seldom: after a switch no other one is made for a while
`, out.String())
}

func TestAnUnknownRuleIsNamed(t *testing.T) {
	t.Parallel()
	_, _, err := parse([]string{"--rule", "switch-mix,unheard"}, os.Stderr)
	require.ErrorContains(t, err, `there is no rule "unheard"; there are: switch-mix, `)
	_, chosen, err := parse([]string{"--rule", "too-few,switch-mix"}, os.Stderr)
	require.NoError(t, err)
	assert.Len(t, chosen, 2)
	_, _, err = parse([]string{"--seeds", "0"}, os.Stderr)
	require.Error(t, err)
}
