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
// counted how much of what was read is about which namespace, and where that is too much, the one that
// took most of it is left out of what is asked next. The others are read as ever.
//
// leftOutFor is how long a namespace is left out before it is asked for again, which costs all
// others one reading if it shows as much as before.
const leftOutFor = 10 * time.Minute

// reading counts what its answers take.
type reading struct {
	mu sync.Mutex
	// left is in bytes.
	left int64
	// shares are bytes by namespace.
	shares map[string]int64
}

// take counts a further piece of an answer; false says that it is too much.
func (r *reading) take(of *rows, piece []byte) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	of.count(piece, r.shares)
	r.left -= int64(len(piece))
	return r.left >= 0
}

// heaviest is the namespace that took most; empty where that had no name.
func (r *reading) heaviest() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	name, most := "", int64(0)
	for _, one := range slices.Sorted(maps.Keys(r.shares)) {
		if r.shares[one] > most {
			name, most = one, r.shares[one]
		}
	}
	return name
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

// crowds are the namespaces that are left out, and until when. The zero value has none. It is safe
// for concurrent use.
type crowds struct {
	mu    sync.Mutex
	until map[string]time.Time
}

// leaveOut leaves one more out, as long as their names are not too long together (longestNames). An answer
// that was asked for together with others may fail for one that is left out already.
func (c *crowds) leaveOut(name string, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := slices.AppendSeq([]string{name}, maps.Keys(c.until))
	if _, already := c.until[name]; already || name == "" || len(strings.Join(all, "|")) > longestNames {
		return
	}
	if c.until == nil {
		c.until = map[string]time.Time{}
	}
	c.until[name] = at.Add(leftOutFor)
}

// readmit asks again for those whose time is over. A clock may have been set back.
func (c *crowds) readmit(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.until, func(_ string, until time.Time) bool { return !at.Before(until) || until.Sub(at) > leftOutFor })
}

func (c *crowds) names() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(maps.Keys(c.until))
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
	return fmt.Sprintf("prometheus %s: left out for %s: %s: the series that are shown there took more of an answer that was too large than "+
		"those of all other namespaces; set sample_limit for what Prometheus scrapes", e.address, leftOutFor, strings.Join(e.namespaces, ", "))
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

// crowded looks for whom to leave out after a query failed.
func (c *crowds) crowded(ctx context.Context, err error, at time.Time) {
	if large := (sizeError{}); errors.As(err, &large) {
		c.leaveOut(readingOf(ctx).heaviest(), at)
	}
}
