package round

import "time"

// sparse is the share of the window from which on an interval is too long for it: too
// often the window would hold a single scrape, of which there is no rate. Half of it is exact,
// and what is seen of an interval is a little more or less.
const sparse = 0.53

// Windows are those that are tried: the usual one first, and the widest last.
func Windows(usual time.Duration) []time.Duration {
	return []time.Duration{usual, usual * 5 / 2, usual * 5}
}

// Window is the smallest of Windows that holds two scrapes at this interval and is at most the
// longest; else the longest.
func Window(interval, usual, longest time.Duration) time.Duration {
	if float64(interval) <= sparse*float64(usual) {
		return usual
	}
	for _, w := range Windows(usual) {
		if w >= 2*interval && w <= longest {
			return w
		}
	}
	return max(usual, longest)
}

// Covered are those of the scrapes, oldest first, that a window covers which ends now: what
// lies after its beginning and until its end, as a range of PromQL has it (left-open since
// Prometheus 3).
func Covered[S any](scrapes []S, at func(S) time.Duration, now, window time.Duration) []S {
	end := len(scrapes)
	for end > 0 && at(scrapes[end-1]) > now {
		end--
	}
	first := end
	for first > 0 && at(scrapes[first-1]) > now-window {
		first--
	}
	return scrapes[first:end]
}
