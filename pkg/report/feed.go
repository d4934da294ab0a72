package report

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// Feed is one state of a page that is served while what it shows goes on: as the page
// itself, and as the data by which an open page shows the next state.
type Feed struct{ page page }

// FeedInterval is how often an open page asks for the next state.
const FeedInterval = time.Second

// DemoFeed is the state of a run of the demo. State says in a few words what goes on;
// after a state that has ended there is none.
func DemoFeed(o Observation, state string, ended bool) Feed {
	p := demoPage(o)
	p.Title = "The demo, live"
	p.Data.Live = &pageLive{State: state, Every: FeedInterval.Seconds(), Ended: ended}
	return Feed{p}
}

// WriteHTML writes the page. It asks for the next state at "state.json" beside it.
func (f Feed) WriteHTML(w io.Writer) error { return f.page.write(w) }

// ScriptHash is the page's script as the source of a Content-Security-Policy.
func (f Feed) ScriptHash() (string, error) {
	script, err := f.page.scripts()
	if err != nil {
		return "", fmt.Errorf("reading the page's script: %w", err)
	}
	sum := sha256.Sum256([]byte(script))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'", nil
}

// feedTable is a table for a page that is open.
type feedTable struct {
	Caption string       `json:"caption"`
	Columns []feedColumn `json:"columns"`
	Rows    []feedRow    `json:"rows"`
}

type feedColumn struct {
	Group string `json:"group,omitempty"`
	Name  string `json:"name"`
	Hint  string `json:"hint,omitempty"`
	Text  bool   `json:"text,omitempty"`
}

// feedRow has its cells as lists: the text, and what it is sorted by.
type feedRow struct {
	Key   string  `json:"key"`
	Cells [][]any `json:"cells"`
}

// MarshalJSON writes the data of the page.
func (f Feed) MarshalJSON() ([]byte, error) {
	tables := []feedTable{}
	for _, t := range f.page.Tables {
		out := feedTable{Caption: t.Caption, Rows: []feedRow{}}
		for _, c := range t.Columns {
			out.Columns = append(out.Columns, feedColumn(c))
		}
		for _, r := range t.Rows {
			row := feedRow{Key: r.Key}
			for _, c := range r.Cells {
				row.Cells = append(row.Cells, []any{c.Text, c.Sort})
			}
			out.Rows = append(out.Rows, row)
		}
		tables = append(tables, out)
	}
	return json.Marshal(struct {
		Title  string      `json:"title"`
		Lead   string      `json:"lead"`
		Tables []feedTable `json:"tables"`
		Data   pageData    `json:"data"`
	}{f.page.Title, f.page.Lead, tables, f.page.Data})
}
