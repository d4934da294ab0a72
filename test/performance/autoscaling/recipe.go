package autoscaling

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/replay"
	"llmd.ai/workload-variant-autoscaler/test/performance/front"
	"llmd.ai/workload-variant-autoscaler/test/performance/sweep"
)

// recipes are the rivals at what their projects ship, where nobody tunes. The bounds of
// llm-d's are lifted, as a user of theirs would who has more load than 8 or 10 replicas serve.
var recipes = []string{
	"llmd-queue:bounds=lifted", "llmd-saturation:bounds=lifted", "llmd-tokens:bounds=lifted", "llmd-slo:bounds=lifted",
	"hpa:queue", "keda", "kpa", "planner", "saturation-v1", "saturation-v2",
}

// mostOfRecipes is the aim: what hybrid mode is to cost over the cheapest recipe at the same
// attainment, in the geometric mean over all cases.
const mostOfRecipes = 0.80

// shippedCase is what came of one case. Its JSON names are a published format.
type shippedCase struct {
	Of   string       `json:"of"`
	Ours shippedRun   `json:"ours"`
	All  []shippedRun `json:"recipes"`
	// Ratio is what ours costs over the front of the recipes at the attainment of ours. Is
	// says what is known of it.
	Ratio *float64    `json:"ratio"`
	Noise *float64    `json:"ratioNoise"`
	Is    front.Place `json:"ratioIs"`
	// Cheapest is the cheapest recipe that attains at least as much; else the one that attains
	// most. RatioToIt is what ours costs over it.
	Cheapest  string   `json:"cheapest"`
	RatioToIt *float64 `json:"ratioToCheapest"`
	own       front.Entry
	others    []front.Entry
}

// shippedRun is one policy in the mean over the seeds. The cost is a multiple of the bound.
type shippedRun struct {
	Policy          string   `json:"policy"`
	Attainment      float64  `json:"attainment"`
	AttainmentNoise *float64 `json:"attainmentNoise"`
	CostOverBound   float64  `json:"costOverBound"`
}

// shippedResults are those of all cases.
type shippedResults struct {
	Commit string        `json:"commit"`
	Seeds  int           `json:"seeds"`
	Cases  []shippedCase `json:"cases"`
	// Mean is the geometric mean of the ratios over all cases, Reached that over those in which
	// a recipe attains as much, and ToCheapest that of the ratios to the cheapest recipes there.
	Mean       mean         `json:"mean"`
	Reached    mean         `json:"reached"`
	ToCheapest *float64     `json:"reachedToCheapest"`
	Aim        float64      `json:"aim"`
	Answer     front.Answer `json:"answer"`
}

// mean is a geometric mean of ratios, and what is known of it.
type mean struct {
	Cases int         `json:"cases"`
	Ratio *float64    `json:"ratio"`
	Noise *float64    `json:"ratioNoise"`
	Is    front.Place `json:"ratioIs"`
}

// againstRecipes plays ours at its defaults and all recipes on each case.
func againstRecipes(o *options, chosen []trial, out, progress io.Writer) (err error) {
	log, err := openRuns(o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.close()) }()
	r := shippedResults{Commit: o.commit, Seeds: o.seeds, Aim: mostOfRecipes}
	for _, t := range chosen {
		began := time.Now()
		s := stand{options: o, trial: t, log: log}
		for _, startup := range t.startups {
			c, err := s.play(startup)
			if err != nil {
				return fmt.Errorf("%s: %w", t, err)
			}
			r.Cases = append(r.Cases, c)
			c.print(out)
		}
		tell(progress, "%-50s done in %s\n", t, time.Since(began).Round(time.Second))
	}
	r.judge()
	r.print(out)
	if o.target == "" {
		return nil
	}
	encoded, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the results: %w", err)
	}
	if err := os.WriteFile(o.target, append(encoded, '\n'), 0o644); err != nil {
		return fmt.Errorf("write the results: %w", err)
	}
	return nil
}

// stand plays one trial.
type stand struct {
	*options
	trial trial
	log   *runs
	// prepared is the trial with each seed, once somebody has to play on it.
	prepared []*replay.Trial
}

// play plays one case with all seeds. What the file of runs has is not played again.
func (s *stand) play(startup time.Duration) (shippedCase, error) {
	policies, seeds := append([]string{ours[0]}, recipes...), s.seeds
	played, missing := make([]*replay.Result, len(policies)*seeds), []int{}
	for i := range played {
		if played[i] = s.log.made(s.trial.String(), startup, i%seeds, policies[i/seeds]); played[i] == nil {
			missing = append(missing, i)
		}
	}
	var err error
	if s.prepared == nil && len(missing) > 0 {
		if s.prepared, err = prepare(s.options, s.trial); err != nil {
			return shippedCase{}, err
		}
	}
	keep := s.log.keep()
	_, err = sweep.Each(s.workers, len(missing), func(i int) (struct{}, error) {
		at := missing[i]
		seed, policy := at%seeds, policies[at/seeds]
		result, _, err := s.prepared[seed].Play(replay.Play{Policy: policy, Startup: startup})
		played[at] = &result
		if err == nil && keep != nil {
			keep(sweep.Kept{Case: s.trial.String(), Startup: startup, Seed: seed, Policy: policy, Result: &result})
		}
		return struct{}{}, err
	})
	if err != nil {
		return shippedCase{}, err
	}
	entries := make([]front.Entry, len(policies))
	for p, policy := range policies {
		entries[p].Family, entries[p].Setting = policy, policy
		for _, result := range played[p*seeds : (p+1)*seeds] {
			entries[p].Runs = append(entries[p].Runs, front.Point{Attainment: result.Attainment, Cost: result.CostOverBound})
		}
	}
	return judgeRecipes(fmt.Sprintf("%s, start-up %g s", s.trial, startup.Seconds()), entries[0], entries[1:]), nil
}

// judgeRecipes compares ours with the recipes of one case.
func judgeRecipes(of string, own front.Entry, others []front.Entry) shippedCase {
	v := front.Judge(own, others)
	c := shippedCase{Of: of, Ours: shippedOf(own), Ratio: orNull(v.Ratio), Noise: orNull(v.Noise), Is: v.Place, own: own, others: others}
	for _, e := range others {
		c.All = append(c.All, shippedOf(e))
	}
	best := others[0]
	for _, e := range others[1:] {
		if rather(e.Mean(), best.Mean(), own.Mean().Attainment) {
			best = e
		}
	}
	c.Cheapest, c.RatioToIt = best.Setting, orNull(own.Mean().Cost/best.Mean().Cost)
	return c
}

// rather reports whether a user who needs so much would rather take a than b: what attains it
// and costs less, else what attains more.
func rather(a, b front.Point, enough float64) bool {
	keepsA, keepsB := a.Attainment >= enough, b.Attainment >= enough
	switch {
	case keepsA && keepsB:
		return a.Cost < b.Cost
	case keepsA != keepsB:
		return keepsA
	}
	return a.Attainment > b.Attainment
}

func shippedOf(e front.Entry) shippedRun {
	mean := e.Mean()
	return shippedRun{Policy: e.Setting, Attainment: rounded(mean.Attainment), AttainmentNoise: orNull(e.Noise().Attainment), CostOverBound: rounded(mean.Cost)}
}

// judge answers the aim, over all cases. Where no recipe attains as much, what attains most
// counts, which costs less than one that would.
func (r *shippedResults) judge() {
	var reached []shippedCase
	logs := 0.0
	for i := range r.Cases {
		if c := &r.Cases[i]; c.Is != front.Above {
			reached = append(reached, *c)
			logs += math.Log(*c.RatioToIt)
		}
	}
	r.Mean, r.Answer = r.meanOf(r.Cases)
	r.Reached, _ = r.meanOf(reached)
	r.ToCheapest = orNull(math.Exp(logs / float64(len(reached))))
}

// meanOf is the geometric mean over some cases, against the aim.
func (r *shippedResults) meanOf(cases []shippedCase) (mean, front.Answer) {
	owns, others := make([]front.Entry, len(cases)), make([][]front.Entry, len(cases))
	for i := range cases {
		owns[i], others[i] = cases[i].own, cases[i].others
	}
	ratio, noise, place := front.Mean(owns, others)
	return mean{len(cases), orNull(ratio), orNull(noise), place}, front.AtMost(ratio, noise, r.Seeds, place, mostOfRecipes)
}

func (m mean) String() string { return ratioOf(m.Ratio, m.Noise, m.Is) }

func (c *shippedCase) print(out io.Writer) {
	tell(out, "\n%s\n", c.Of)
	for _, one := range append([]shippedRun{c.Ours}, c.All...) {
		tell(out, "   %-32s %6.2f %% at %.2f\n", one.Policy, 100*one.Attainment, one.CostOverBound)
	}
	tell(out, "   ratio to the recipes at the same attainment %s; %s of %s\n", ratioOf(c.Ratio, c.Noise, c.Is), ratioOf(c.RatioToIt, nil, front.Within), c.Cheapest)
}

func (r *shippedResults) print(out io.Writer) {
	tell(out, "\n%s over the recipes at the same attainment, in the geometric mean of all %d cases: %s\n", ours[0], r.Mean.Cases, r.Mean)
	tell(out, "of the %d cases in which a recipe attains as much: %s; over the cheapest recipe that does: %s\n", r.Reached.Cases, r.Reached, ratioOf(r.ToCheapest, nil, front.Within))
	tell(out, "aim, at most %.2f: %s\n", r.Aim, r.Answer)
	tell(out, "\n| case | %s | %s | ratio | cheapest that attains as much, ratio to it |\n|---|%s---|---|\n", ours[0], strings.Join(recipes, " | "), strings.Repeat("---|", 1+len(recipes)))
	for i := range r.Cases {
		c := &r.Cases[i]
		tell(out, "| %s |", c.Of)
		for _, one := range append([]shippedRun{c.Ours}, c.All...) {
			tell(out, " %.1f %% at %.2f |", 100*one.Attainment, one.CostOverBound)
		}
		tell(out, " %s | %s, %s |\n", ratioOf(c.Ratio, c.Noise, c.Is), c.Cheapest, ratioOf(c.RatioToIt, nil, front.Within))
	}
}

// ratioOf is a ratio that may not be known.
func ratioOf(ratio, noise *float64, is front.Place) string {
	if ratio == nil {
		return "-"
	}
	off := math.NaN()
	if noise != nil {
		off = *noise
	}
	return ratioText(*ratio, off, is)
}
