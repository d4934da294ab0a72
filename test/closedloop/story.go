package closedloop

import (
	"fmt"
	"sort"
	"strings"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

// story is what a failing scenario tells.
type story struct {
	lines    []line
	failures []failure
}

type line struct {
	at   time.Duration
	text string
}

func (s *story) happened(at time.Duration, text string) {
	s.lines = append(s.lines, line{at, text})
}

func (s *story) decided(at time.Duration, v *variantState, to int, kind decision.Round, why string) {
	s.happened(at, fmt.Sprintf("%s: %d -> %d (%d serve) [%s] %s", v.key.Name, v.target, to, v.serves(), kind, why))
}

// clock is a time of the scenario.
func clock(at time.Duration) string {
	seconds := int(at / time.Second)
	return fmt.Sprintf("%d:%02d:%02d", seconds/3600, seconds/60%60, seconds%60)
}

// tell is the whole story: fleet, load, what happened, and what failed.
func (w *world) tell() string {
	var b strings.Builder
	b.WriteString(w.scenario.String())
	b.WriteString("timeline:\n")
	lines := w.story.lines
	const most = 120
	for i, l := range lines {
		if len(lines) > most && i == most/2 {
			fmt.Fprintf(&b, "  ... %d more ...\n", len(lines)-most)
		}
		if len(lines) > most && i >= most/2 && i < len(lines)-most/2 {
			continue
		}
		fmt.Fprintf(&b, "  %s  %s\n", clock(l.at), l.text)
	}
	b.WriteString("end:\n")
	for _, m := range w.models {
		fmt.Fprintf(&b, "  %s\n", w.rates(m))
		for _, v := range m.variants {
			fmt.Fprintf(&b, "    %s: %s\n", v.Name, v.why)
		}
	}
	fmt.Fprintf(&b, "  room: %s\n", w.room())
	b.WriteString("failed:\n")
	for _, f := range w.story.failures {
		fmt.Fprintf(&b, "  %s at %s: %s\n", f.check, clock(f.at), f.text)
	}
	return b.String()
}

// rates are a model's replicas and what each of them truly serves.
func (w *world) rates(m *modelState) string {
	parts := []string{fmt.Sprintf("%s at %.4g requests/s", m.Name, m.rate(w.now))}
	waiting := m.held
	for _, v := range m.variants {
		t := &v.truth
		text := fmt.Sprintf("%s %d of %d serve (cost %.4g; each %.4g to %.4g at saturation", v.Name, v.serves(), v.target, float64(v.Cost),
			t.saturation.least, t.saturation.most)
		if t.promised {
			text += fmt.Sprintf(", %.4g to %.4g within the promise", t.promise.least, t.promise.most)
		}
		parts = append(parts, text+fmt.Sprintf(", %.4g at most; the plan says %.4g)", t.curve.max, float64(v.said)))
		for _, p := range v.pods {
			waiting += p.waiting
		}
	}
	return strings.Join(parts, "; ") + fmt.Sprintf("; %.0f wait", waiting)
}

// room is the free devices of the nodes.
func (w *world) room() string {
	free := map[string]int{}
	for _, n := range w.nodes {
		free[fmt.Sprintf("%s free %d of %d", n.Accelerator, n.Free.Devices, n.Allocatable.Devices)]++
	}
	parts := make([]string, 0, len(free))
	for text, n := range free {
		parts = append(parts, fmt.Sprintf("%d nodes %s", n, text))
	}
	sort.Strings(parts)
	return strings.Join(parts, ", ")
}

// String says everything that is not as usual.
func (s *Scenario) String() string {
	var b strings.Builder
	mode, limit := "capacity-only", "unlimited"
	if s.Hybrid {
		mode = "hybrid"
	}
	if s.Limited {
		limit = "limited"
	}
	fmt.Fprintf(&b, "%s, %s; calm from %s, settled at %s, end %s\n", mode, limit, clock(s.Calm), clock(s.settled()), clock(s.end()))
	if s.Together > 0 {
		fmt.Fprintf(&b, "  requests come by chance, %.0f at once\n", s.Together)
	}
	if s.Share > 0 {
		fmt.Fprintf(&b, "  %.3g of the requests are to keep the promise\n", s.Share)
	}
	if t := s.Saturation; t != (decision.Saturation{}) {
		fmt.Fprintf(&b, "  thresholds: cache %.2f, %.2f to spare; queue %.0f, %.1f to spare\n", t.KVCacheThreshold, t.KVSpareTrigger, t.QueueLengthThreshold, t.QueueSpareTrigger)
	}
	for _, g := range s.Nodes {
		fmt.Fprintf(&b, "  %d nodes with %d %s each\n", g.Nodes, g.Devices, g.Accelerator)
	}
	if s.Hidden {
		b.WriteString("  the nodes cannot be read\n")
	}
	if s.Grows > 0 {
		fmt.Fprintf(&b, "  a node autoscaler brings a node within %s\n", s.Grows)
	}
	if s.Spreads {
		b.WriteString("  the scheduler takes the node with the most room\n")
	}
	if s.Schedules > 0 {
		fmt.Fprintf(&b, "  the scheduler takes %s\n", s.Schedules)
	}
	if s.Quota > 0 {
		fmt.Fprintf(&b, "  a quota of %d devices\n", s.Quota)
	}
	for i := range s.Models {
		s.Models[i].tell(&b)
	}
	for i := range s.Faults {
		f := &s.Faults[i]
		fmt.Fprintf(&b, "  fault from %s: %s\n", clock(f.From), f.describe(s.Models[f.Model].Name+"-"+s.Models[f.Model].Variants[f.Variant].Name))
	}
	return b.String()
}

func (m *Model) tell(b *strings.Builder) {
	fmt.Fprintf(b, "  %s: %.0f + %.0f tokens", m.Name, m.Shape.Input, m.Shape.Output)
	if m.SLO != (capacity.SLO{}) {
		fmt.Fprintf(b, ", promised TTFT %.5g ms, ITL %.5g ms", float64(m.SLO.TTFT), float64(m.SLO.ITL))
	}
	fmt.Fprintf(b, ", priority %d", m.Priority)
	if m.Weight > 0 {
		fmt.Fprintf(b, ", weight %g", m.Weight)
	}
	for _, option := range []struct {
		on   bool
		text string
	}{
		{m.Gateway, "gateway"}, {!m.Gateway, "no gateway"}, {m.Even, "a router that knows no load"},
		{m.Skew > 0, fmt.Sprintf("one replica may get %.3g times as much as another", m.Skew)},
		{m.Misses > 0, fmt.Sprintf("too many miss the promise above %.3g of the rate", m.Misses)},
		{m.Clients > 0, fmt.Sprintf("%.3g clients for each request per second, who wait for the answer", m.Clients)},
		{m.Patience > 0, fmt.Sprintf("clients wait %s", m.Patience)}, {m.Sleeps > 0, fmt.Sprintf("may sleep after %s", m.Sleeps)},
	} {
		if option.on {
			b.WriteString(", " + option.text)
		}
	}
	b.WriteString("\n    load:")
	for i, p := range m.Load {
		if i == 8 {
			fmt.Fprintf(b, " ... (%d points)", len(m.Load))
			break
		}
		fmt.Fprintf(b, " %s %.4g/s", clock(p.At), p.Rate)
	}
	if last := m.Load[len(m.Load)-1]; len(m.Load) > 8 {
		fmt.Fprintf(b, " %s %.4g/s", clock(last.At), last.Rate)
	}
	b.WriteString("\n")
	for j := range m.Variants {
		m.Variants[j].tell(b)
	}
}

func (v *Variant) tell(b *strings.Builder) {
	fmt.Fprintf(b, "    %s: %dx%s, cost %.4g, %d replicas, start-up %s", v.Name, v.Devices, v.Accelerator, float64(v.Cost), v.Replicas, v.Startup)
	p := v.Policy
	usual := decision.DefaultVariantPolicy()
	for _, option := range []struct {
		on   bool
		text string
	}{
		{!v.Seen, "not seen yet"}, {v.exact(), "profile given"}, {v.Told && v.Wrong > 0, fmt.Sprintf("profile given that takes %.2f times as long", v.Wrong)}, {!v.Told, "profile not given"},
		{v.Budget > 0, fmt.Sprintf("%.0f tokens of prompts per iteration", float64(v.Budget))}, {v.Metric, "a HorizontalPodAutoscaler applies it"}, {v.Grace > 0, fmt.Sprintf("grace %s", v.Grace)},
		{p.Min > 0, fmt.Sprintf("min %d", p.Min)}, {p.Max >= 0, fmt.Sprintf("max %d", p.Max)}, {v.Kubernetes, "Kubernetes picks"}, {v.Several, "several pods"},
		{v.Ordered, fmt.Sprintf("one after the other, %s apart", v.Settling)},
		{fingerprint(p.Up) != fingerprint(usual.Up), "scaleUp " + behavior(p.Up)},
		{fingerprint(p.Down) != fingerprint(usual.Down), "scaleDown " + behavior(p.Down)},
	} {
		if option.on {
			b.WriteString(", " + option.text)
		}
	}
	fmt.Fprintf(b, "\n      base %.4g, per request %.4g, per resident token %.4g, per prompt token %.4g ms, form %d; batch %d, cache %.0f\n",
		float64(v.Profile.Base), float64(v.Profile.PerRequest), float64(v.Profile.PerResidentToken), float64(v.Profile.PerPrefillToken), v.Profile.Form, v.Profile.BatchLimit, float64(v.Profile.KVTokens))
}

func behavior(rules decision.Behavior) string {
	text := fmt.Sprintf("{window %s, select %s, tolerance %.2f", rules.Window, rules.Select, rules.Tolerance)
	for _, p := range rules.Policies {
		if p.Percent > 0 {
			text += fmt.Sprintf(", %d%% per %s", p.Percent, p.Period)
		} else {
			text += fmt.Sprintf(", %d per %s", p.Pods, p.Period)
		}
	}
	return text + "}"
}
