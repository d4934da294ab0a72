package prometheus

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"llmd.ai/workload-variant-autoscaler/pkg/modelserver"
)

// One reading is of all namespaces, and what a pod shows is as long as whoever runs it likes. So it is
// counted how much of what was read is about which namespace. Where that is too much, or too long for
// the time that there is, the one that took most of it is left out of what is asked next. The others
// are read as ever.
const (
	// leftOutFor is how long a namespace is left out before it is asked for again, which costs all
	// others one reading if it shows as much as before.
	leftOutFor = 10 * time.Minute
	// firstOut is for how long where time ended first. The network or the server may have been slow
	// for a moment, and nobody's samples are too old after it. Each further time without a whole reading
	// in between is twice as long.
	firstOut = 30 * time.Second
	// cutShare is the part of what a reading may take that must have been read in vain before
	// somebody is to blame for it: 1 MiB, which are 1,000 pods in each of the queries under way.
	cutShare = 64
)

// reading counts what its answers take.
type reading struct {
	mu sync.Mutex
	// left is in bytes.
	left    int64
	answers []*taken
}

// taken is what one answer took.
type taken struct {
	// bytes are by namespace.
	bytes map[string]int64
	// cut says that its end was not read.
	cut bool
}

// begin counts a further answer.
func (r *reading) begin() *taken {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := &taken{bytes: map[string]int64{}}
	r.answers = append(r.answers, t)
	return t
}

// take counts a further piece of an answer; false says that it is too much.
func (r *reading) take(by *taken, of *rows, piece []byte) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	of.count(piece, by.bytes)
	r.left -= int64(len(piece))
	return r.left >= 0
}

// end is the end of what is read of an answer.
func (r *reading) end(by *taken, cut bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	by.cut = cut
}

// shares are bytes by namespace: of all that was read, and of the answers whose end was not read.
func (r *reading) shares() (all, cut map[string]int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	all, cut = map[string]int64{}, map[string]int64{}
	for _, answer := range r.answers {
		for name, n := range answer.bytes {
			all[name] += n
			if answer.cut {
				cut[name] += n
			}
		}
	}
	return all, cut
}

// heaviest is the namespace that took most, and how much of how many bytes.
func heaviest(shares map[string]int64) (name string, most, all int64) {
	for _, one := range slices.Sorted(maps.Keys(shares)) {
		all += shares[one]
		if shares[one] > most {
			name, most = one, shares[one]
		}
	}
	return name, most, all
}

// Where a series of an answer begins, and where its namespace stands. A label's value cannot contain
// them, because the quotes in it are escaped.
var (
	beginOfRow  = []byte(`"metric":{`)
	beginOfName = []byte(`"` + modelserver.LabelNamespace + `":"`)
)

// longestName is more than a namespace's name has, in bytes.
const longestName = 256

// rows follows which series of an answer is about which namespace, while it is read piece by piece and
// none of it is kept.
type rows struct {
	// tail is the end of the last piece, which may be the beginning of a mark or of a name.
	tail []byte
	// size is how much was read of the row, and within says that there is one.
	size   int64
	within bool
	// name is the namespace of the row, where known.
	name  string
	known bool
}

// count adds a piece to the shares.
func (r *rows) count(piece []byte, shares map[string]int64) {
	data := slices.Concat(r.tail, piece)
	for {
		at := bytes.Index(data, beginOfRow)
		if at < 0 {
			break
		}
		r.look(data[:at])
		r.pass(at, shares)
		*r = rows{within: true, size: int64(len(beginOfRow))}
		data = data[at+len(beginOfRow):]
	}
	cut := max(0, len(data)-len(beginOfName)+1)
	if at := r.look(data); at >= 0 {
		cut = at
	}
	r.pass(cut, shares)
	r.tail = slices.Clone(data[cut:])
}

// pass counts bytes of the row, for its namespace once that is known.
func (r *rows) pass(n int, shares map[string]int64) {
	r.size += int64(n)
	if r.within && r.known {
		shares[r.name] += r.size
		r.size = 0
	}
}

// look looks for the namespace of the row. It returns where one begins that does not end yet; else -1.
func (r *rows) look(data []byte) int {
	if r.known {
		return -1
	}
	at := bytes.Index(data, beginOfName)
	if at < 0 {
		return -1
	}
	name := data[at+len(beginOfName):]
	end := bytes.IndexByte(name, '"')
	if end < 0 && len(name) < longestName {
		return at
	}
	r.known = true
	if end >= 0 {
		r.name = string(name[:end])
	}
	return -1
}

// crowds are the namespaces that are left out. The zero value has none. It is safe for concurrent use.
type crowds struct {
	mu sync.Mutex
	// now are left out, and lately are those that were, whose next time is longer.
	now, lately map[string]exclusion
	// there are the namespaces that the last reading found.
	there map[string]bool
}

// exclusion is how long somebody is left out.
type exclusion struct {
	until time.Time
	lasts time.Duration
}

// leaveOut leaves one more out, as long as their names are not too long together (longestNames). An answer
// that was asked for together with others may fail for one that is left out already.
func (c *crowds) leaveOut(name string, at time.Time, lasts time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := slices.AppendSeq([]string{name}, maps.Keys(c.now))
	if _, already := c.now[name]; already || name == "" || len(strings.Join(all, "|")) > longestNames {
		return
	}
	if c.now == nil {
		c.now, c.lately = map[string]exclusion{}, map[string]exclusion{}
	}
	lasts = min(leftOutFor, max(lasts, 2*c.lately[name].lasts))
	c.now[name] = exclusion{at.Add(lasts), lasts}
}

// readmit asks again for those whose time is over. A clock may have been set back.
func (c *crowds) readmit(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	over := func(since time.Time, lasts time.Duration) bool { return !at.Before(since) || since.Sub(at) > lasts }
	maps.DeleteFunc(c.lately, func(_ string, e exclusion) bool { return over(e.until.Add(leftOutFor), 2*leftOutFor) })
	maps.DeleteFunc(c.now, func(name string, e exclusion) bool {
		if !over(e.until, e.lasts) {
			return false
		}
		c.lately[name] = e
		return true
	})
}

// forgive forgets who was left out, after a reading that was whole with them.
func (c *crowds) forgive() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.lately)
}

// find keeps which namespaces there are.
func (c *crowds) find(seen ...map[unit]seenPace) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.there = map[string]bool{}
	for _, some := range seen {
		for of := range some {
			c.there[of.Namespace] = true
		}
	}
}

// alone says whether nobody would gain if one were left out.
func (c *crowds) alone(name string, shares map[string]int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, one := range slices.AppendSeq(slices.Collect(maps.Keys(c.there)), maps.Keys(shares)) {
		if _, out := c.now[one]; one != name && !out {
			return false
		}
	}
	return true
}

func (c *crowds) names() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(maps.Keys(c.now))
}

// matchers leave them out; nil where there is none.
func (c *crowds) matchers() []*labels.Matcher {
	names := c.names()
	if len(names) == 0 {
		return nil
	}
	for i, name := range names {
		names[i] = regexp.QuoteMeta(name)
	}
	return []*labels.Matcher{labels.MustNewMatcher(labels.MatchNotRegexp, modelserver.LabelNamespace, strings.Join(names, "|"))}
}

// uncrowded leaves them out of every query. That is done where queries are sent, so that none is forgotten.
type uncrowded struct {
	v1.API
	crowds *crowds
}

func (u uncrowded) Query(ctx context.Context, query string, at time.Time, options ...v1.Option) (model.Value, v1.Warnings, error) {
	if m := u.crowds.matchers(); m != nil {
		return oneCluster{u.API, m}.Query(ctx, query, at, options...)
	}
	return u.API.Query(ctx, query, at, options...)
}

func (u uncrowded) QueryRange(ctx context.Context, query string, r v1.Range, options ...v1.Option) (model.Value, v1.Warnings, error) {
	if m := u.crowds.matchers(); m != nil {
		return oneCluster{u.API, m}.QueryRange(ctx, query, r, options...)
	}
	return u.API.QueryRange(ctx, query, r, options...)
}

// LeftOutError is the error of a reading without some namespaces, of which too much would have to be read.
type LeftOutError struct {
	address    string
	namespaces []string
}

// Error implements error. It is the same each time.
func (e LeftOutError) Error() string {
	return fmt.Sprintf("prometheus %s: left out for up to %s: %s: the series that are shown there took most of an answer that was too large, "+
		"or too long for the time that there is; %s", e.address, leftOutFor, strings.Join(e.namespaces, ", "), toLimit)
}

// OfNamespace is what is to be said to somebody who sees this namespace alone; nil for nothing.
func (e LeftOutError) OfNamespace(name string) error {
	if !slices.Contains(e.namespaces, name) {
		return nil
	}
	return LeftOutError{e.address, []string{name}}
}

// tell is an error where namespaces are left out.
func (c *crowds) tell(address string) error {
	if names := c.names(); len(names) > 0 {
		return LeftOutError{address, names}
	}
	return nil
}

// crowded looks for whom to leave out after a query failed. A server that thinks too long blames nobody:
// only what was read shows for whom the time went.
func (c *crowds) crowded(ctx context.Context, err error, at time.Time, l limits) {
	r := readingOf(ctx)
	if r == nil || errors.Is(err, context.Canceled) {
		return
	}
	all, cut := r.shares()
	name, _, _ := heaviest(all)
	lasts := leftOutFor
	if !errors.As(err, &sizeError{}) {
		var most, vain int64
		if name, most, vain = heaviest(cut); most < l.reading/cutShare || 2*most <= vain {
			return
		}
		lasts = firstOut
	}
	if !c.alone(name, all) {
		c.leaveOut(name, at, lasts)
	}
}
