package tuning

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Family is a policy with the settings of it that are tried: an axis, along which it has
// ever fewer replicas, and lines, which are combinations of everything else.
type Family struct {
	// Name is the policy without its settings, such as hpa:rps.
	Name string
	// Key is the setting of the axis; empty where the value is all that follows the name.
	Key string
	// Axis are its values, the one with the most replicas first.
	Axis []float64
	// Lines are the other settings, such as "down=60s"; the first one is empty and stands
	// for the defaults.
	Lines []string
	// start is the value by which a search begins, made of what a load test of one replica
	// of a model shows.
	start func(LoadTest) float64
	// shared is set where the value is the same for all models, whatever they serve.
	shared bool
}

// LoadTest is what one replica of a model's cheapest variant is found to serve within its
// promise.
type LoadTest struct {
	// Rate is in requests per second, Input the prompt tokens of one request, and InFlight
	// the requests that it then has at a time.
	Rate, Input, InFlight float64
}

// Families are all that can be tuned, in the order in which people read them.
func Families() []Family {
	// An HPA's own window is 5 minutes; shorter ones follow the load more closely.
	windows := []string{"", "down=120s", "down=60s"}
	rate := func(t LoadTest) float64 { return 0.8 * t.Rate }
	tokens := func(t LoadTest) float64 { return 0.8 * t.Rate * t.Input }
	inFlight := func(t LoadTest) float64 { return 0.8 * t.InFlight }
	fleets := make([]float64, mostFleet)
	for i := range fleets {
		fleets[i] = float64(mostFleet - i)
	}
	all := []Family{{Name: "static", Axis: fleets, Lines: []string{""}, start: always(20), shared: true}}
	for _, by := range []string{"hpa", "keda"} {
		all = append(all,
			Family{Name: by + ":rps", Key: "rps", Axis: series(0.01, 1000), Lines: windows, start: rate},
			Family{Name: by + ":intok", Key: "intok", Axis: series(10, 1e6), Lines: windows, start: tokens},
			Family{Name: by + ":inflight", Key: "inflight", Axis: series(0.1, 1000), Lines: windows, start: inFlight},
			Family{Name: by + ":queue", Key: "queue", Axis: series(0.01, 100), Lines: windows, start: always(1), shared: true},
			Family{Name: by + ":kv", Key: "kv", Axis: series(0.01, 1), Lines: windows, start: always(0.3), shared: true},
		)
	}
	return all
}

// mostFleet is the largest static fleet that is tried.
const mostFleet = 400

func always(value float64) func(LoadTest) float64 { return func(LoadTest) float64 { return value } }

// Named is the family of that name; the error says which there are.
func Named(name string) (Family, error) {
	var names []string
	for _, f := range Families() {
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
	at := slices.IndexFunc(f.Axis, func(v float64) bool { return v >= value })
	if f.Axis[0] > f.Axis[len(f.Axis)-1] {
		at = slices.IndexFunc(f.Axis, func(v float64) bool { return v <= value })
	}
	if at < 0 {
		return len(f.Axis) - 1
	}
	return at
}

// Policy is the name of the policy with the settings of a place. Several models get the
// value in proportion to what one replica of each serves.
func (f *Family) Policy(p Place, tests []LoadTest) string {
	values := make([]string, len(tests))
	for m := range tests {
		value := f.Axis[p.At]
		if m > 0 && !f.shared && f.start(tests[0]) > 0 {
			value = digits(value*f.start(tests[m])/f.start(tests[0]), 3)
		}
		values[m] = strconv.FormatFloat(value, 'f', -1, 64)
	}
	setting := strings.Join(values, "+")
	if len(slices.Compact(values)) == 1 {
		setting = values[0]
	}
	if f.Key != "" {
		setting = f.Key + "=" + setting
	}
	base, _, _ := strings.Cut(f.Name, ":")
	if line := f.Lines[p.Line]; line != "" {
		setting += "," + line
	}
	return base + ":" + setting
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

// digits keeps so many significant digits.
func digits(value float64, n int) float64 {
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(value, 'e', n-1, 64), 64)
	return rounded
}
