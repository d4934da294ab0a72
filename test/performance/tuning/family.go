package tuning

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

// Family is a policy with the settings of it that are tried: an axis, along which it has
// ever fewer replicas, and lines, which are combinations of everything else.
type Family struct {
	// Name is the policy without its settings, such as hpa:rps.
	Name string
	// Key is the setting of the axis; empty where the value stands alone.
	Key string
	// Axis are its values, the one with the most replicas first. A single one is the
	// default, and not written.
	Axis []float64
	// Lines are the other settings; the first one is empty and stands for the defaults.
	Lines []Line
	// tied is a second setting that follows the first in a proportion.
	tied  string
	ratio float64
	// start is the value by which a search begins, made of what a load test of one replica
	// of a model shows.
	start func(LoadTest) float64
	// Aside is set for policies that nobody is judged against.
	Aside bool
	// Placed is set for policies that drive one variant of each model, which may be placed
	// in several ways.
	Placed bool
	// shared is set where the value is the same for all models, whatever they serve.
	shared bool
}

// Line is a combination of settings beside the one of the axis.
type Line struct {
	// Settings are written as they are, such as "down=60s".
	Settings string
	// Floor is the least replicas that there always are, as a share of LoadTest.Peak; 0 is
	// the policy's own.
	Floor float64
}

// lines are some with the policy's own least replicas.
func lines(settings ...string) []Line {
	all := make([]Line, len(settings))
	for i := range settings {
		all[i].Settings = settings[i]
	}
	return all
}

// floors are the shares of the peak that are tried as the least replicas. Who knows a load
// that comes in bursts keeps replicas for them.
var floors = []float64{0.25, 0.5}

// floored are lines, and all of them once more with each floor.
func floored(plain []Line) []Line {
	all := slices.Clone(plain)
	for _, floor := range floors {
		for _, line := range plain {
			line.Floor = floor
			all = append(all, line)
		}
	}
	return all
}

// LoadTest is what one replica of a variant is found to serve within its model's promise.
type LoadTest struct {
	// Rate is in requests per second, Input the prompt tokens of one request, and InFlight
	// the requests that it then has at a time.
	Rate, Input, InFlight float64
	// ITL is the promised time per further token in milliseconds; where none is promised,
	// what it is at the rate.
	ITL float64
	// Peak is how many replicas the load needs at its peak, and Least how many the variant
	// always has.
	Peak, Least int
}

// Placing is which variants a policy drives, and what a load test of one replica of each
// model's finds.
type Placing struct {
	// Setting is how that is written, such as "variant=dear,split=cheap:4"; empty for the
	// default.
	Setting string
	Tests   []LoadTest
}

// Families of others are all that can be tuned and judged against, in the order in which
// people read them; what their settings mean says package replay.
func Families() []Family {
	// The window of scaling down is 5 minutes by default; shorter ones follow the load
	// more closely.
	plain := lines("", "down=120s", "down=60s")
	rate := func(t LoadTest) float64 { return 0.8 * t.Rate }
	tokens := func(t LoadTest) float64 { return 0.8 * t.Rate * t.Input }
	inFlight := func(t LoadTest) float64 { return 0.8 * t.InFlight }
	var all []Family
	for _, by := range []string{"hpa", "keda"} {
		// With a floor, KEDA and the HPA by itself do the same.
		windows := plain
		if by == "hpa" {
			windows = floored(plain)
		}
		all = append(all,
			Family{Name: by + ":rps", Key: "rps", Axis: series(0.01, 1000), Lines: windows, start: rate, Placed: true},
			Family{Name: by + ":intok", Key: "intok", Axis: series(10, 1e6), Lines: windows, start: tokens, Placed: true},
			Family{Name: by + ":inflight", Key: "inflight", Axis: series(0.1, 1000), Lines: windows, start: inFlight, Placed: true},
			Family{Name: by + ":queue", Key: "queue", Axis: series(0.01, 100), Lines: windows, start: always(1), shared: true, Placed: true},
			Family{Name: by + ":kv", Key: "kv", Axis: series(0.01, 1), Lines: windows, start: always(0.3), shared: true, Placed: true},
		)
	}
	// Knative aims at 70 % of its target, and scales down as soon as its stable window of a
	// minute says so.
	stable := floored(lines("", "window=30s", "window=120s", "down=120s"))
	return append(all,
		Family{Name: "kpa:rps", Key: "rps", Axis: series(0.01, 1000), Lines: stable, start: func(t LoadTest) float64 { return rate(t) / 0.7 }, Placed: true},
		Family{Name: "kpa:inflight", Key: "inflight", Axis: series(0.1, 1000), Lines: stable, start: func(t LoadTest) float64 { return inFlight(t) / 0.7 }, Placed: true},
		Family{
			Name: "saturation-v1", Key: "kvSpareTrigger", Axis: shares(0.79, 0.01), Lines: lines("", "queueSpareTrigger=4.5", "down=120s"),
			start: always(0.4), shared: true,
		},
		Family{
			Name: "saturation-v2", Key: "scaleUpThreshold", Axis: shares(0.02, 1), Lines: lines("", "down=60s"),
			tied: "scaleDownBoundary", ratio: 0.7 / 0.85, start: always(0.5), shared: true,
		},
		// A planner that is told a shorter time per token than was promised has more replicas.
		Family{
			Name: "planner", Key: "itl", Axis: series(1, 1e4),
			Lines: floored(lines("", "interval=60s", "predictor=kalman", "predictor=kalman,interval=60s", "mode=load", "mode=both,interval=60s")),
			start: func(t LoadTest) float64 { return 0.8 * t.ITL }, shared: true, Placed: true,
		},
	)
}

// Aside are policies that can be tuned, too, and that nobody is judged against: fleets that
// never change, found by hindsight, and our own with other settings than the defaults.
func Aside() []Family {
	fleets := make([]float64, mostFleet)
	for i := range fleets {
		fleets[i] = float64(mostFleet - i)
	}
	windows := lines("", "down=120s", "down=60s", "up=60s")
	return []Family{
		{Name: "hybrid", Key: "risk", Axis: risks, Lines: windows, start: always(decision.DefaultRisk), shared: true, Aside: true},
		{Name: "capacity-only", Axis: []float64{0}, Lines: windows, start: always(0), Aside: true},
		{Name: "static", Axis: fleets, Lines: lines(""), start: always(20), shared: true, Aside: true},
	}
}

// risks are how sure our own plans may be asked to be, the surest first.
var risks = []float64{0.995, 0.99, 0.98, 0.97, 0.95, 0.925, 0.9, 0.85, 0.8, 0.75, 0.7, 0.65, 0.6, 0.55, 0.5}

// mostFleet is the largest static fleet that is tried.
const mostFleet = 400

func always(value float64) func(LoadTest) float64 { return func(LoadTest) float64 { return value } }

// Named are the families of that name among those of others and those aside; the error
// says which there are.
func Named(name string) (Family, error) {
	var names []string
	for _, f := range slices.Concat(Families(), Aside()) {
		if f.Name == name {
			return f, nil
		}
		names = append(names, f.Name)
	}
	return Family{}, fmt.Errorf("%q cannot be tuned; expected one of %s", name, strings.Join(names, ", "))
}

// Start is the place by which a search begins.
func (f *Family) Start(tests []LoadTest) int {
	value := f.start(tests[0])
	beyond := func(v float64) bool { return v >= value }
	if f.Axis[0] > f.Axis[len(f.Axis)-1] {
		beyond = func(v float64) bool { return v <= value }
	}
	if at := slices.IndexFunc(f.Axis, beyond); at >= 0 {
		return at
	}
	return len(f.Axis) - 1
}

// Policy is the policy with the settings of a place. Several models get the value in
// proportion to what one replica of each serves.
func (f *Family) Policy(p Place, where Placing) string {
	var items []string
	if len(f.Axis) > 1 {
		value := f.value(p, where.Tests)
		if f.Key != "" {
			value = f.Key + "=" + value
		}
		items = append(items, value)
	}
	if f.tied != "" {
		items = append(items, f.tied+"="+number(digits(f.ratio*f.Axis[p.At], 3)))
	}
	line := &f.Lines[p.Line]
	for _, more := range []string{line.Settings, line.least(where.Tests), where.Setting} {
		if more != "" {
			items = append(items, more)
		}
	}
	base, _, _ := strings.Cut(f.Name, ":")
	if len(items) == 0 {
		return base
	}
	return base + ":" + strings.Join(items, ",")
}

// value is that of the axis, once for all models or once for each.
func (f *Family) value(p Place, tests []LoadTest) string {
	values := make([]string, len(tests))
	for m := range tests {
		value := f.Axis[p.At]
		if m > 0 && !f.shared && f.start(tests[0]) > 0 {
			value = digits(value*f.start(tests[m])/f.start(tests[0]), 3)
		}
		values[m] = number(value)
	}
	return ofModels(values)
}

// Plain is how many of the lines, the first ones, have no floor. With each floor as many
// follow, in the same order.
func (f *Family) Plain() int {
	if at := slices.IndexFunc(f.Lines, func(l Line) bool { return l.Floor > 0 }); at >= 0 {
		return at
	}
	return len(f.Lines)
}

// least is the setting of the floor; empty where it is that of the policy, one replica of
// each model or the variant's own least.
func (l *Line) least(tests []LoadTest) string {
	values, some := make([]string, len(tests)), false
	for m := range tests {
		own := max(1, tests[m].Least)
		n := max(own, int(math.Round(l.Floor*float64(tests[m].Peak))))
		values[m], some = strconv.Itoa(n), some || n > own
	}
	if !some {
		return ""
	}
	return "min=" + ofModels(values)
}

// ofModels are the values of the models, once where all are the same.
func ofModels(values []string) string {
	if !slices.ContainsFunc(values, func(v string) bool { return v != values[0] }) {
		return values[0]
	}
	return strings.Join(values, "+")
}

// series are the preferred numbers of E48 (IEC 60063) from one bound to another: 48 in
// each power of ten, one about 5 % above the other.
func series(from, to float64) []float64 {
	var all []float64
	for i := int(math.Floor(48 * math.Log10(from))); ; i++ {
		value := digits(math.Pow(10, float64(i)/48), 3)
		if value > to*(1+1e-9) {
			return all
		}
		if value >= from*(1-1e-9) {
			all = append(all, value)
		}
	}
}

// shares are hundredths from one to another, up or down.
func shares(from, to float64) []float64 {
	var all []float64
	first, last := int(math.Round(100*from)), int(math.Round(100*to))
	for i := min(first, last); i <= max(first, last); i++ {
		all = append(all, float64(i)/100)
	}
	if first > last {
		slices.Reverse(all)
	}
	return all
}

func number(value float64) string { return strconv.FormatFloat(value, 'f', -1, 64) }

// digits keeps so many significant digits.
func digits(value float64, n int) float64 {
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(value, 'e', n-1, 64), 64)
	return rounded
}
