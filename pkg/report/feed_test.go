package report

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func indented(t *testing.T, f Feed) string {
	t.Helper()
	text, err := json.Marshal(f)
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, json.Indent(&out, text, "", " "))
	return out.String() + "\n"
}

func TestTheStateOfADemo(t *testing.T) {
	o := observed()
	o.End = 16 * time.Second
	golden(t, "feed.json", indented(t, DemoFeed(o, "0:16 of 4:00  traffic", false)))
}

func TestALivePageAsksForItsStateAndForNothingElse(t *testing.T) {
	html := written(t, "live.html", DemoFeed(observed(), "1:00 of 4:00  traffic", false).WriteHTML)
	assert.Contains(t, wellFormed(t, html), "1:00 of 4:00  traffic")
	assert.Contains(t, html, `connect-src 'self'`)
	assert.Contains(t, html, `fetch("state.json"`)
	assert.NotRegexp(t, `(?i)https?:|\b(src|href|action)\s*=|url\s*\(|@import|XMLHttpRequest|WebSocket|importScripts`, html)
	kept := written(t, "kept.html", func(w io.Writer) error { return DemoHTML(w, observed()) })
	assert.NotContains(t, kept, "connect-src", "a page that is a file asks for nothing")
	assert.NotContains(t, kept, "fetch(")
}

// Requests that were sent and are not done yet are load, and neither met nor missed.
func TestRequestsOnTheirWayAreLoad(t *testing.T) {
	o := observed()
	o.End = 16 * time.Second
	id := o.Models[0].ID
	o.Models[0].Arrivals = []time.Duration{10 * time.Second, 11 * time.Second, 12 * time.Second, 15 * time.Second, 17 * time.Second}
	first := demoPage(o).Data.Runs[0].Course.Models[0]
	assert.Equal(t, id, first.ID)
	assert.Equal(t, []*float64{new(1.0), new(0.5), new(0.5)}, first.Load[5:])
	assert.Equal(t, 1.0, *first.Met[5], "the one that is done")
	assert.Nil(t, first.Met[7])
	o.Models[0].Arrivals = []time.Duration{}
	assert.Zero(t, *demoPage(o).Data.Runs[0].Course.Models[0].Load[5])
}

func TestADemoThatHasNotBegunHasAState(t *testing.T) {
	o := observed()
	o.End, o.Outcomes, o.Moves, o.Decisions = 0, nil, nil, nil
	for i := range o.Variants {
		o.Variants[i].Replicas, o.Variants[i].Held = nil, nil
	}
	assert.NotPanics(t, func() { indented(t, DemoFeed(o, "The cluster is starting.", false)) })
}

func TestTheScriptHashIsThatOfThePage(t *testing.T) {
	f := DemoFeed(observed(), "", false)
	hash, err := f.ScriptHash()
	require.NoError(t, err)
	assert.Regexp(t, `^'sha256-[A-Za-z0-9+/]{43}='$`, hash)
	script, err := f.page.scripts()
	require.NoError(t, err)
	var html bytes.Buffer
	require.NoError(t, f.WriteHTML(&html))
	assert.Contains(t, html.String(), "<script>"+script+"</script>", "the bytes that a browser hashes")
}

func TestWhatARunShowed(t *testing.T) {
	golden(t, "shown.txt", strings.Join(sample().Shown(Style{}, "variant-scheduler"), "\n")+"\n")
	empty := New(Observation{Models: []ObservedModel{{ID: "m"}}}).Shown(Style{}, "s")
	assert.Contains(t, empty[1], "no request was sent")
}

// A change of the mix in one instant is no peak.
func TestTheReplicasOfAModelAreThoseOfAllItsVariants(t *testing.T) {
	d := Demo{Variants: []Variant{
		{Model: "m", Replicas: []ReplicaPoint{{T: 0, Desired: 3}, {T: 10, Desired: 1}, {T: 20, Desired: 2}}},
		{Model: "m", Replicas: []ReplicaPoint{{T: 10, Desired: 2}, {T: 30, Desired: 0}}},
		{Model: "other", Replicas: []ReplicaPoint{{T: 0, Desired: 9}}},
	}}
	first, most, last := d.replicasOf("m")
	assert.Equal(t, []int{3, 4, 2}, []int{first, most, last})
}
