package workload

import (
	"fmt"
	"strings"
	"time"
)

// Example is a synthetic load with a name.
type Example struct {
	Name string
	// Description says in one line what it is.
	Description string
	// Load describes it; its seed is that of the one who asks.
	Load Synthetic
}

// Length is how long it lasts.
func (e Example) Length() time.Duration { return e.Load.Rate[len(e.Load.Rate)-1].At }

// Examples are the synthetic loads with names, in the order in which people read
// of them. Where a comment names no source for a number there is none: it was
// chosen so that a change can be seen.
func Examples() []Example {
	return []Example{
		code(), chat(), diurnal(),
		{
			Name:        "step",
			Description: "an hour of chat: 10 requests per second, four times as many for the second third, and back",
			Load: chatting([]Point{
				{0, 10}, {20 * time.Minute, 10}, {20 * time.Minute, 40}, {40 * time.Minute, 40}, {40 * time.Minute, 10}, {time.Hour, 10},
			}),
		},
		{
			Name:        "ramp",
			Description: "an hour of chat: from 5 to 50 requests per second in half an hour, ten minutes there, and back",
			Load:        chatting([]Point{{0, 5}, {30 * time.Minute, 50}, {40 * time.Minute, 50}, {time.Hour, 5}}),
		},
		burst(),
		onOff(),
	}
}

// Names are those of the synthetic loads.
func Names() []string {
	var names []string
	for _, e := range Examples() {
		names = append(names, e.Name)
	}
	return names
}

// Named starts the synthetic load with that name and tells how long it lasts.
func Named(name string, seed uint64) (Stream, time.Duration, error) {
	for _, e := range Examples() {
		if e.Name == name {
			e.Load.Seed = seed
			s, err := NewSynthetic(e.Load)
			return s, e.Length(), err
		}
	}
	return nil, 0, fmt.Errorf("there is no synthetic load %q; expected one of %s", short(name), strings.Join(Names(), ", "))
}

// The largest lengths of the examples in tokens: far above the 99th percentiles
// of the services that they are like.
const (
	mostInput  = 32_768
	mostOutput = 8_192
)

const day = 24 * time.Hour

// code is a weekday of the coding service of the Azure 2024 traces, as a public
// analysis of them says: 27.8 requests per second, a weekday's peak 10 times its
// trough, context of 2,511 tokens in the mean and 7,685 at the 99th percentile,
// output of 23 and 271.
//
// The width of the day follows from two more of its figures, an hourly
// coefficient of variation of 0.848 over the week and weekends 68 % below: within
// a weekday 0.71 are left, and this exponent gives that.
func code() Example {
	return Example{
		Name:        "code",
		Description: "a weekday of a coding service: 27.8 requests per second on average, peak ten times the trough, long prompts and short answers",
		Load: Synthetic{
			Rate:   daily(27.8, 10, 1.68),
			Input:  LengthsOf(2511, 7685, mostInput),
			Output: LengthsOf(23, 271, mostOutput),
		},
	}
}

// chat is a weekday of the conversation service of the Azure 2024 traces, from
// the same analysis: 45.1 requests per second, peak twice the trough, context of
// 1,632 tokens in the mean and 6,683 at the 99th percentile, output of 106 and 694.
// The burstiness is that of the Azure 2023 conversation trace.
func chat() Example {
	return Example{
		Name:        "chat",
		Description: "a weekday of a chat service: 45.1 requests per second on average, peak twice the trough",
		Load: Synthetic{
			Rate:      daily(45.1, 2, 1),
			Variation: 1.09,
			Input:     LengthsOf(1632, 6683, mostInput),
			Output:    LengthsOf(106, 694, mostOutput),
		},
	}
}

// diurnal is a smaller chat service with a deeper night: the busiest hour has 6.2
// times the requests of the quietest, as that of the ServeGen model m-large does.
// Tokens and burstiness are those of chat.
func diurnal() Example {
	e := chat()
	e.Name = "diurnal"
	e.Description = "a day of a chat service: 20 requests per second on average, peak 6.2 times the trough"
	e.Load.Rate = daily(20, 6.2, 1)
	return e
}

// burst is as bursty as the code trace of Azure 2023: 2.57 requests per second
// with a coefficient of variation of the gaps of 13.2, context of 2,048 tokens in
// the mean and 7,436 at the 99th percentile, output of 28 and 252.
func burst() Example {
	return Example{
		Name:        "burst",
		Description: "an hour of a coding service in bursts: 2.57 requests per second on average, gaps with a coefficient of variation of 13.2",
		Load: Synthetic{
			Rate:      []Point{{0, 2.57}, {time.Hour, 2.57}},
			Variation: 13.2,
			Input:     LengthsOf(2048, 7436, mostInput),
			Output:    LengthsOf(28, 252, mostOutput),
		},
	}
}

// onOff is a load that stops and comes back, for what scales to zero.
func onOff() Example {
	var rate []Point
	for at := time.Duration(0); at < 2*time.Hour; at += 30 * time.Minute {
		off := at + 15*time.Minute
		rate = append(rate, Point{at, 20}, Point{off, 20}, Point{off, 0}, Point{off + 15*time.Minute, 0})
	}
	return Example{
		Name:        "on-off",
		Description: "two hours of chat: 20 requests per second for a quarter of an hour, none for the next, and so on",
		Load:        chatting(rate),
	}
}

// chatting has the tokens of the Azure 2023 conversation trace: context of 1,155
// tokens in the mean and 4,142 at the 99th percentile, output of 211 and 601.
func chatting(rate []Point) Synthetic {
	return Synthetic{
		Rate:   rate,
		Input:  LengthsOf(1155, 4142, mostInput),
		Output: LengthsOf(211, 601, mostOutput),
	}
}

// daily is a smooth day with a mean rate: quietest between three and four in
// the morning, busiest twelve hours later, and the peak so many times the trough. A width
// above 1 makes the night longer than the day.
func daily(mean, peakToTrough, width float64) []Point {
	return Wave{Mean: mean, PeakToTrough: peakToTrough, Width: width, Period: day, Peak: 15*time.Hour + 30*time.Minute}.Points(day)
}
