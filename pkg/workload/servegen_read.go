package workload

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"
)

// The first lines of the three files of a ServeGen trace.
const (
	ServeGenRateHeader    = "window_start_s,total_rate_rps,active_clients,rate_weighted_cv"
	ServeGenClientsHeader = "client,window_start_s,rate_rps,cv,pattern,p_shape,p_scale"
	ServeGenLengthsHeader = "client,window_start_s,field,mean,q1,q5,q10,q25,q50,q75,q90,q95,q99,support"
)

const (
	// serveGenWindow is the length of the only window of a trace.
	serveGenWindow = 10 * time.Minute
	// maxWindowRequests bounds the requests of one window, which are held together.
	maxWindowRequests = 10_000_000
	// evenGaps is a shape above which gaps are as good as equal; beyond it sums of
	// them would leave the numbers.
	evenGaps = 1e9
)

// File is a part of a trace: the name, usually that of the file, stands in errors.
type File struct {
	Name   string
	Reader io.Reader
}

// window is a row of the rate file.
type window struct {
	start time.Duration
	// rate is the number of requests per second of all clients together.
	rate float64
	// line is where it stands.
	line int
	// clients are those that are active.
	clients []client
}

// client is a row of the clients file: how one client asks within one window.
type client struct {
	id int
	// rate is in requests per second. That of all clients is scaled to that of the
	// window.
	rate float64
	// shape is that of the distribution of the gaps between its requests. The scale in
	// the file is that of a gap in seconds; it is not read, for the rate says more
	// exactly how long the mean gap is.
	shape   float64
	weibull bool
	line    int
}

// shapes are how long the requests of clients are, from a start on.
type shapes struct {
	start time.Duration
	of    map[int]*lengthsOf
}

// lengthsOf are the lengths of one client's requests; nil ones are not known.
type lengthsOf struct {
	input, output *quantiles
}

func (l *lengthsOf) known() bool { return l != nil && l.input != nil && l.output != nil }

// seconds is a whole number of seconds as a time.
func seconds(n int) time.Duration { return time.Duration(n) * time.Second }

// readRates reads the windows of a trace and the length of each.
func readRates(f File) ([]window, time.Duration, error) {
	l := newLines(f.Reader, f.Name, ServeGenRateHeader, maxLine)
	if err := l.header(); err != nil {
		return nil, 0, err
	}
	var windows []window
	step := serveGenWindow
	for {
		columns, err := l.columns(4)
		switch {
		case errors.Is(err, io.EOF) && len(windows) == 0:
			return nil, 0, l.fail("there are no windows; expected rows of %s", ServeGenRateHeader)
		case errors.Is(err, io.EOF):
			return windows, step, nil
		case err != nil:
			return nil, 0, err
		}
		start, err := l.whole("window_start_s", columns[0])
		if err != nil {
			return nil, 0, err
		}
		rate, err := l.nonNegative("total_rate_rps", columns[1])
		if err != nil {
			return nil, 0, err
		}
		w := window{start: seconds(start), rate: rate, line: l.at}
		if n := len(windows); n == 1 {
			step = w.start - windows[0].start
		}
		if n := len(windows); n > 0 && (step <= 0 || w.start-windows[n-1].start != step) {
			return nil, 0, l.fail("window_start_s is %d after %d; expected every window to be as long as the first, and rows in order of time",
				start, int(windows[n-1].start.Seconds()))
		}
		if rate*step.Seconds() > maxWindowRequests {
			return nil, 0, l.fail("total_rate_rps is %v; expected at most %d requests in a window of %s", rate, maxWindowRequests, step)
		}
		windows = append(windows, w)
	}
}

// readClients puts the rows of the clients file into those of the windows that
// keep says; all rows are checked. Within a window the clients are sorted.
func readClients(f File, windows []window, step time.Duration, keep func(window) bool) error {
	l := newLines(f.Reader, f.Name, ServeGenClientsHeader, maxLine)
	if err := l.header(); err != nil {
		return err
	}
	for {
		c, start, err := readClient(l)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		i := int((start - windows[0].start) / step)
		if start < windows[0].start || i >= len(windows) || windows[i].start != start {
			return l.fail("window_start_s is %d; expected one of the rate file, from %d to %d in steps of %d",
				int(start.Seconds()), int(windows[0].start.Seconds()), int(windows[len(windows)-1].start.Seconds()), int(step.Seconds()))
		}
		if c.rate > 0 && keep(windows[i]) {
			windows[i].clients = append(windows[i].clients, c)
		}
	}
	for i := range windows {
		clients := windows[i].clients
		slices.SortStableFunc(clients, func(a, b client) int { return cmp.Compare(a.id, b.id) })
		for j := 1; j < len(clients); j++ {
			if clients[j].id == clients[j-1].id {
				return fmt.Errorf("%s:%d: client %d has the window %d already in line %d; expected one row for each client and window",
					f.Name, clients[j].line, clients[j].id, int(windows[i].start.Seconds()), clients[j-1].line)
			}
		}
	}
	return nil
}

func readClient(l *lines) (c client, start time.Duration, err error) {
	columns, err := l.columns(7)
	if err != nil {
		return c, 0, err
	}
	if c.id, err = l.whole("client", columns[0]); err != nil {
		return c, 0, err
	}
	at, err := l.whole("window_start_s", columns[1])
	if err != nil {
		return c, 0, err
	}
	if c.rate, err = l.nonNegative("rate_rps", columns[2]); err != nil {
		return c, 0, err
	}
	switch columns[4] {
	case "Gamma":
	case "Weibull":
		c.weibull = true
	default:
		return c, 0, l.fail("pattern is %q; expected Gamma or Weibull", short(columns[4]))
	}
	if c.shape, err = l.positive("p_shape", columns[5]); err != nil {
		return c, 0, err
	}
	c.shape = min(c.shape, evenGaps)
	if _, err = l.positive("p_scale", columns[6]); err != nil {
		return c, 0, err
	}
	c.line = l.at
	return c, seconds(at), nil
}

// readLengths reads the lengths file, in order of time.
func readLengths(f File) ([]shapes, error) {
	l := newLines(f.Reader, f.Name, ServeGenLengthsHeader, maxLine)
	if err := l.header(); err != nil {
		return nil, err
	}
	var all []shapes
	index := map[int]int{}
	for {
		columns, err := l.columns(14)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		id, err := l.whole("client", columns[0])
		if err != nil {
			return nil, err
		}
		start, err := l.whole("window_start_s", columns[1])
		if err != nil {
			return nil, err
		}
		q, err := readQuantiles(l, columns)
		if err != nil {
			return nil, err
		}
		i, ok := index[start]
		if !ok {
			i = len(all)
			index[start] = i
			all = append(all, shapes{start: seconds(start), of: map[int]*lengthsOf{}})
		}
		if err := all[i].put(l, id, columns[2], q); err != nil {
			return nil, err
		}
	}
	// A period without anybody to follow is none.
	all = slices.DeleteFunc(all, func(s shapes) bool { return len(s.donors()) == 0 })
	if len(all) == 0 {
		return nil, l.fail("no client has both input_tokens and output_tokens; expected at least one, for the others to follow")
	}
	slices.SortFunc(all, func(a, b shapes) int { return cmp.Compare(a.start, b.start) })
	return all, nil
}

func readQuantiles(l *lines, columns []string) (*quantiles, error) {
	mean, err := l.nonNegative("mean", columns[3])
	if err != nil {
		return nil, err
	}
	names := strings.Split(ServeGenLengthsHeader, ",")
	var at [len(levels)]float64
	for i := range at {
		if at[i], err = l.nonNegative(names[4+i], columns[4+i]); err != nil {
			return nil, err
		}
		if at[i] > math.MaxInt32 {
			return nil, l.fail("%s is %q; expected fewer than 2^31 tokens", names[4+i], short(columns[4+i]))
		}
		if i > 0 && at[i] < at[i-1] {
			return nil, l.fail("%s is %s, below %s, %s; expected quantiles that do not fall", names[4+i], columns[4+i], names[3+i], columns[3+i])
		}
	}
	return newQuantiles(at, mean), nil
}

func (s shapes) put(l *lines, id int, field string, q *quantiles) error {
	of := s.of[id]
	if of == nil {
		of = &lengthsOf{}
		s.of[id] = of
	}
	place := &of.input
	switch field {
	case "input_tokens":
	case "output_tokens":
		place = &of.output
	default:
		return l.fail("field is %q; expected input_tokens or output_tokens", short(field))
	}
	if *place != nil {
		return l.fail("client %d has %s of the window %d already; expected one row for each client, window and field",
			id, field, int(s.start.Seconds()))
	}
	*place = q
	return nil
}

// donors are the clients with known lengths, sorted.
func (s shapes) donors() []int {
	var ids []int
	for id, of := range s.of {
		if of.known() {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}
