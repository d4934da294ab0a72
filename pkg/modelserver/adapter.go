package modelserver

import (
	"math"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Labels of Adapters: names with commas between them.
const (
	LabelRunningAdapters = "running_lora_adapters"
	LabelWaitingAdapters = "waiting_lora_adapters"
)

const (
	// MostAdapterLists is how many series of one server are looked at. It has one for each set of
	// adapters that were ever in use at once, and keeps them all until it starts anew.
	MostAdapterLists = 64
	// MostAdapters is how many names are taken of one server, as many as an object may list.
	MostAdapters = 64
	// longestAdapter is how long a name is at most, in characters, as in an object.
	longestAdapter = 128
	// adapterInUse is for how long after its last use an adapter is taken to be there.
	adapterInUse = time.Hour
)

// AdapterList is one series of Adapters.
type AdapterList struct {
	// Used is when these were last in use, as a Unix time in seconds.
	Used             float64
	Running, Waiting string
}

// NewestLists are those that were in use last, of which there may be very many.
func NewestLists(lists []AdapterList) []AdapterList {
	slices.SortFunc(lists, func(a, b AdapterList) int {
		switch {
		case a.Used > b.Used || math.IsNaN(b.Used) && !math.IsNaN(a.Used):
			return -1
		case a.Used < b.Used || math.IsNaN(a.Used) && !math.IsNaN(b.Used):
			return 1
		case a.Running != b.Running:
			return strings.Compare(a.Running, b.Running)
		}
		return strings.Compare(a.Waiting, b.Waiting)
	})
	return slices.Clone(lists[:min(len(lists), MostAdapterLists)])
}

// AdaptersOf are the names of the adapters of one server that were in use lately, sorted. Those that
// were in use last come first where there are too many. What could not stand in an object is no name.
func AdaptersOf(lists []AdapterList, at time.Time) []string {
	var all []string
	for _, list := range NewestLists(lists) {
		if !(list.Used > float64(at.Add(-adapterInUse).Unix())) {
			break
		}
		for _, names := range []string{list.Running, list.Waiting} {
			for name := range strings.SplitSeq(names, ",") {
				if name = strings.TrimSpace(name); isAdapter(name) && len(all) < MostAdapters && !slices.Contains(all, name) {
					all = append(all, name)
				}
			}
		}
	}
	slices.Sort(all)
	return all
}

func isAdapter(name string) bool {
	hidden := func(r rune) bool { return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) }
	return name != "" && utf8.ValidString(name) && utf8.RuneCountInString(name) <= longestAdapter && !strings.ContainsFunc(name, hidden)
}
