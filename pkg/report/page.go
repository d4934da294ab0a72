package report

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
)

// page is what one HTML file shows: tables that stand in its markup, and the courses of
// the runs, which its script draws. It knows nothing of where they came from.
type page struct {
	Title string
	Lead  string
	// Headline says what is worth knowing first, and Made how the page was made, line by
	// line. Both may be empty.
	Headline string
	Made     []string
	Tables   []PageTable
	// Note says what a point of the charts stands for.
	Note string
	Data pageData
	// script and style are added to the page's own.
	script, style string
}

// PageTable is one table of the page. Columns that follow each other under one Group
// share a heading.
type PageTable struct {
	Caption string
	Columns []PageColumn
	Rows    []PageRow
	// Note stands below.
	Note string
}

// PageColumn is one column of a table.
type PageColumn struct {
	Group, Name string
	// Hint explains the column.
	Hint string
	// Text columns align to the left.
	Text bool
}

// PageRow is one row; Run is the index of the run that it is about, or -1. Key is its name
// in a table whose rows change.
type PageRow struct {
	Run   int
	Kind  string
	Key   string
	Cells []PageCell
}

// PageCell is a text, and what it is sorted by.
type PageCell struct {
	Text string
	Sort float64
}

// Headings are the groups of the columns and how many columns each one spans.
func (t PageTable) Headings() []PageHeading {
	var headings []PageHeading
	for _, c := range t.Columns {
		if n := len(headings); n > 0 && c.Group != "" && headings[n-1].Name == c.Group {
			headings[n-1].Span++
			continue
		}
		headings = append(headings, PageHeading{Name: c.Group, Span: 1})
	}
	return headings
}

// PageHeading is what columns share.
type PageHeading struct {
	Name string
	Span int
}

// Grouped reports whether any column has a group.
func (t PageTable) Grouped() bool {
	for _, c := range t.Columns {
		if c.Group != "" {
			return true
		}
	}
	return false
}

// pageData is the page's JSON. Times are in seconds from the start of the run, latencies
// in milliseconds, prices per hour; null is unknown. The names are short because there
// are many of them.
type pageData struct {
	// Clusters are the different sets of nodes; runs name theirs by its index.
	Clusters [][]pageNode `json:"clusters"`
	Runs     []pageRun    `json:"runs"`
	// Beside is what another package knows of the runs.
	Beside any `json:"beside,omitempty"`
	// Live is set where the page is served while what it shows goes on.
	Live *pageLive `json:"live,omitempty"`
}

// pageLive says what goes on. Every is the time in seconds between two looks at the next
// state; after the one that is Ended there is none.
type pageLive struct {
	State string  `json:"state"`
	Every float64 `json:"every"`
	Ended bool    `json:"ended"`
}

// pageRun is one run. Scene is what was run on what, Kind says whose policy it is.
type pageRun struct {
	Scene      string      `json:"scene,omitempty"`
	Policy     string      `json:"policy"`
	Kind       string      `json:"kind"`
	Startup    *float64    `json:"startup,omitempty"`
	Parameters [][2]string `json:"parameters,omitempty"`
	Attainment *float64    `json:"attainment,omitempty"`
	Cost       *float64    `json:"cost,omitempty"`
	Over       *float64    `json:"over,omitempty"`
	Course     *pageCourse `json:"course,omitempty"`
}

// pageCourse is what happened in a run.
type pageCourse struct {
	// Start is the clock's time of 0, as Unix time; 0 where times are those of the run.
	Start     int64          `json:"start,omitempty"`
	Length    float64        `json:"length"`
	Models    []pageModel    `json:"models"`
	Variants  []pageVariant  `json:"variants"`
	Cluster   int            `json:"cluster"`
	Lives     []pageLife     `json:"lives"`
	Decisions []pageDecision `json:"decisions"`
}

// pageModel is the course of one model. Point i is about the time from i*Step on.
type pageModel struct {
	ID   string  `json:"id"`
	TTFT float64 `json:"sloTtft"`
	ITL  float64 `json:"sloItl"`
	Step float64 `json:"step"`
	// Load is in requests per second, Met the share of them that kept the SLO; nil where
	// nobody counted it.
	Load      []*float64 `json:"load"`
	Met       []*float64 `json:"met"`
	TTFTs     []*float64 `json:"ttft"`
	ITLs      []*float64 `json:"itl"`
	CostRate  []float64  `json:"cost,omitempty"`
	BoundRate []float64  `json:"bound,omitempty"`
}

// pageVariant is the course of one variant: from T[i] on, Wanted[i] and Ready[i].
type pageVariant struct {
	Name        string    `json:"name"`
	Model       int       `json:"model"`
	Accelerator string    `json:"accelerator"`
	Devices     int       `json:"devices"`
	Cost        *float64  `json:"cost,omitempty"`
	T           []float64 `json:"t"`
	Wanted      []int     `json:"wanted"`
	Ready       []int     `json:"ready"`
}

// pageNode is one node; Others is how many of its devices other work holds.
type pageNode struct {
	Name        string `json:"name"`
	Accelerator string `json:"accelerator"`
	Devices     int    `json:"devices"`
	Others      int    `json:"others,omitempty"`
}

// pageLife is one replica from when it was asked for until it was gone; an instant that
// never came is -1. In the JSON it is a list, since there are thousands.
type pageLife struct {
	Variant, Node                           int
	Created, Placed, Serving, Leaving, Gone float64
	Name                                    string
}

// MarshalJSON writes the list.
func (l pageLife) MarshalJSON() ([]byte, error) {
	return json.Marshal([]any{l.Variant, l.Node, l.Created, l.Placed, l.Serving, l.Leaving, l.Gone, l.Name})
}

// pageDecision is one change of the wanted replicas.
type pageDecision struct {
	T       float64    `json:"t"`
	Variant int        `json:"v"`
	From    int        `json:"from"`
	To      int        `json:"to"`
	Reason  string     `json:"reason,omitempty"`
	Message string     `json:"message,omitempty"`
	Steps   []pageStep `json:"steps,omitempty"`
}

// pageStep is one step of a decision.
type pageStep struct {
	Stage, Reason, Detail string
	Before, After         int
}

// MarshalJSON writes a list.
func (s pageStep) MarshalJSON() ([]byte, error) {
	return json.Marshal([]any{s.Stage, s.Before, s.After, s.Reason, s.Detail})
}

// cluster finds or adds a set of nodes.
func (d *pageData) cluster(nodes []pageNode) int {
	for i, known := range d.Clusters {
		if equalNodes(known, nodes) {
			return i
		}
	}
	d.Clusters = append(d.Clusters, nodes)
	return len(d.Clusters) - 1
}

func equalNodes(a, b []pageNode) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

//go:embed page/page.html page/page.css page/*.js
var pageFiles embed.FS

// pageScripts are the parts of the page's one script, in their order. A page that is a file
// does without liveScript, which asks for the next state.
var pageScripts = []string{"base.js", "over.js", "chart.js", "scatter.js", "nodes.js", "decisions.js", liveScript, mainScript}

const liveScript, mainScript = "live.js", "main.js"

// write renders the page. Everything that it needs is in it: it names no other file and
// forbids itself to load any.
func (p page) write(w io.Writer) error {
	source, err := pageFiles.ReadFile("page/page.html")
	if err != nil {
		return fmt.Errorf("writing the page: %w", err)
	}
	style, err := pageFiles.ReadFile("page/page.css")
	if err != nil {
		return fmt.Errorf("writing the page: %w", err)
	}
	script, err := p.scripts()
	if err != nil {
		return fmt.Errorf("writing the page: %w", err)
	}
	// Marshal writes <, > and & as escapes, so no text can end the script element.
	data, err := json.Marshal(p.Data)
	if err != nil {
		return fmt.Errorf("writing the page: %w", err)
	}
	t, err := template.New("page").Parse(string(source))
	if err != nil {
		return fmt.Errorf("writing the page: %w", err)
	}
	err = t.Execute(w, struct {
		page
		Style        template.CSS
		Script, JSON template.JS
	}{p, template.CSS(string(style) + p.style), template.JS(script), template.JS(data)})
	if err != nil {
		return fmt.Errorf("writing the page: %w", err)
	}
	return nil
}

// scripts are the page's one script. What is added comes before that which begins to draw.
func (p page) scripts() (string, error) {
	var script bytes.Buffer
	for _, name := range pageScripts {
		if name == liveScript && p.Data.Live == nil {
			continue
		}
		if name == mainScript {
			script.WriteString(p.script)
		}
		part, err := pageFiles.ReadFile("page/" + name)
		if err != nil {
			return "", err
		}
		script.Write(part)
	}
	return script.String(), nil
}
