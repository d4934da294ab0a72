package replay_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/cmd/playground/demo"
	"llmd.ai/workload-variant-autoscaler/pkg/localcluster"
	"llmd.ai/workload-variant-autoscaler/pkg/replay"
	"llmd.ai/workload-variant-autoscaler/pkg/report"
	"llmd.ai/workload-variant-autoscaler/pkg/workload"
)

const (
	// length is how long there is traffic, and beat how often both are compared.
	length = 70 * time.Second
	beat   = 10 * time.Second
	// lag is how much earlier or later a replica may be wanted than in virtual time: one
	// fast round.
	lag = 10 * time.Second
	// rounds is after how long the manager's rounds repeat.
	rounds = 15 * time.Second
	// apart is how many replicas both may differ by.
	apart = 1
	// minutes is how many minutes in the playground may be compared. A machine that stalls
	// for a second makes one of them another minute than the one that is replayed; a replay
	// that is wrong disagrees with all.
	minutes = 3
)

// The same minute in the playground, with real components in real time, and in virtual
// time: at every tenth second both want the same replicas within one, at most a fast round
// earlier or later, and so do their peaks and their ends.
//
// What is decided depends on when within the manager's fifteen seconds the load rises, and
// on when its replicas are scraped, which no report tells. So the minute is replayed for
// each second of the fifteen. The load is one for which most of these want four or five
// replicas in the end: most of them must agree on the replicas of the model. How these are
// shared out is less certain, because one replica of the first variant costs almost what
// two of the second do: one of them must agree on every variant, too.
//
// One minute in the playground that agrees is enough.
//
// It fails for a replay whose replicas are twice as fast, three times as slow (twice, where
// the machine has time), have a quarter of the batch, or are three at the start.
//
// The model has the cluster for itself, because a replay has one model. (Where the other one
// ran too, it took the nodes that this one wants, the more often the busier the machine was.)
// Its requests are short, so that the rates that the manager sees are soon those that are sent.
func TestVirtualTimeAgreesWithThePlayground(t *testing.T) {
	trace := filepath.Join(t.TempDir(), "trace.csv")
	writeTrace(t, trace)
	args := []string{"--models", "1", "--mode", "capacity-only", "--trace", trace, "--duration", length.String(), "--tail", "0", "--startup", "5s"}
	replays, err := demo.Replays(args)
	require.NoError(t, err)
	var virtual []course
	for begin := time.Duration(0); begin < rounds; begin += time.Second {
		virtual = append(virtual, virtualCourse(t, replays[0], begin))
		t.Logf("virtual, traffic at %3s %v", begin, virtual[len(virtual)-1])
	}
	var found []string
	for range minutes {
		inReal := realCourse(t, args, replays[0].Scenario)
		t.Logf("real                   %v", inReal)
		if found = compare(inReal, virtual); len(found) == 0 {
			return
		}
		t.Logf("%q", found)
	}
	assert.Empty(t, found, "where the replay disagrees with the last minute in the playground")
}

// compare says where the real course differs from the virtual ones: from most of them in
// the replicas of the model, or from each in those of a variant.
func compare(inReal course, virtual []course) []string {
	model := len(inReal) - 1
	if most := peak(inReal[model]); most <= 1+apart {
		return []string{fmt.Sprintf("the model has at most %d replicas: it must grow, or nothing is compared", most)}
	}
	agreed, fewest := 0, []string(nil)
	for i, inVirtual := range virtual {
		if len(disagreements("the model", inReal[model], inVirtual[model])) == 0 {
			agreed++
		}
		var found []string
		for v := range inReal {
			found = append(found, disagreements(inReal.name(v), inReal[v], inVirtual[v])...)
		}
		if i == 0 || len(found) < len(fewest) {
			fewest = found
		}
	}
	if agreed <= len(virtual)/2 {
		fewest = append(fewest, fmt.Sprintf("the model: only %d of %d replays agree", agreed, len(virtual)))
	}
	return fewest
}

// writeTrace writes a minute in the format of the public Azure traces: a low load, a step,
// and a level. A rise would be carried on by the forecast, each phase by another amount. The lengths have the proportion that the profiles in
// the demo's objects are for, 1155 to 211.
func writeTrace(t *testing.T, file string) {
	stream, err := workload.NewSynthetic(workload.Synthetic{
		Rate: []workload.Point{
			{At: 0, Rate: 20}, {At: 30 * time.Second, Rate: 20}, {At: 31 * time.Second, Rate: 230}, {At: length, Rate: 230},
		},
		Input:  workload.Lengths{Mean: 219, Variation: 0.3, Max: 4096},
		Output: workload.Lengths{Mean: 40, Variation: 0.3, Max: 1024},
		Seed:   7,
	})
	require.NoError(t, err)
	var text strings.Builder
	text.WriteString(workload.AzureHeader + "\n")
	for {
		r, err := stream.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		at := time.Date(2026, 11, 2, 9, 0, 0, 0, time.UTC).Add(r.Arrival)
		fmt.Fprintf(&text, "%s,%d,%d\n", at.Format("2006-01-02 15:04:05.000000"), r.Input, r.Output)
	}
	require.NoError(t, os.WriteFile(file, []byte(text.String()), 0o600))
}

// course is the wanted replicas of each variant in the order of the scenario, and last
// those of the model, at every second.
type course [][]int

// newCourse follows the changes of the wanted replicas, each from a time on.
func newCourse(variants int, wanted func(variant int, at time.Duration) int) course {
	c := make(course, variants+1)
	for at := time.Duration(0); at <= length; at += time.Second {
		sum := 0
		for v := range variants {
			n := wanted(v, at)
			c[v], sum = append(c[v], n), sum+n
		}
		c[variants] = append(c[variants], sum)
	}
	return c
}

// name says whose replicas the v-th are.
func (c course) name(v int) string {
	if v == len(c)-1 {
		return "the model"
	}
	return fmt.Sprintf("variant %d", v)
}

// String shows a course at the beats.
func (c course) String() string {
	var text []string
	for _, wanted := range c {
		var shown []int
		for at := time.Duration(0); at <= length; at += beat {
			shown = append(shown, wanted[at/time.Second])
		}
		text = append(text, fmt.Sprint(shown))
	}
	return strings.Join(text, " ")
}

// realCourse runs the demo.
func realCourse(t *testing.T, args []string, s *replay.Scenario) course {
	programs, err := localcluster.Programs()
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "report.json")
	command := exec.Command(filepath.Join(programs, "playground"), append([]string{"demo", "--report", file, "--report-html", filepath.Join(t.TempDir(), "report.html")}, args...)...) //nolint:gosec // our own program
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	require.NoError(t, command.Run(), "%s", &output)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var run report.Demo
	require.NoError(t, json.Unmarshal(text, &run))

	for _, d := range run.Decisions {
		t.Logf("real, at %4.1f s: %s from %d to %d: %s", d.T, d.Variant, d.From, d.To, d.Reason)
	}
	points := map[string][]report.ReplicaPoint{}
	for _, v := range run.Variants {
		points[v.Name] = v.Replicas
	}
	variants := s.Models[0].Variants
	return newCourse(len(variants), func(v int, at time.Duration) int {
		all, n := points[variants[v].Name], 0
		require.NotEmpty(t, all)
		for _, p := range all {
			if p.T <= at.Seconds() {
				n = p.Desired
			}
		}
		return n
	})
}

// virtualCourse replays the minute with the traffic beginning so long after a full round.
func virtualCourse(t *testing.T, o replay.Options, begin time.Duration) course {
	source := o.Source
	o.Source = func() (workload.Stream, error) {
		stream, err := source()
		return delayed{stream, begin}, err
	}
	_, recordings, err := replay.Run(o)
	require.NoError(t, err)
	variants := o.Scenario.Models[0].Variants
	return newCourse(len(variants), func(v int, at time.Duration) int {
		n := variants[v].Initial
		for _, d := range recordings[0].Decisions {
			if d.Variant == variants[v].Name && d.At <= at+begin {
				n = d.To
			}
		}
		return n
	})
}

// delayed is a stream that begins later.
type delayed struct {
	workload.Stream
	by time.Duration
}

// Next implements workload.Stream.
func (d delayed) Next() (workload.Request, error) {
	r, err := d.Stream.Next()
	r.Arrival += d.by
	return r, err
}

// disagreements are the beats at which the real replicas are further from the virtual
// ones than they may be, and peak and end if they are.
func disagreements(who string, inReal, inVirtual []int) []string {
	var found []string
	for at := time.Duration(0); at <= length; at += beat {
		least, most := extent(inVirtual[max(0, at-lag)/time.Second : min(length, at+lag)/time.Second+1])
		if n := inReal[at/time.Second]; n < least-apart || n > most+apart {
			found = append(found, fmt.Sprintf("%s at %s: %d wanted, in virtual time %d to %d", who, at, n, least, most))
		}
	}
	if a, b := peak(inReal), peak(inVirtual); a < b-apart || a > b+apart {
		found = append(found, fmt.Sprintf("%s: its peak is %d, in virtual time %d", who, a, b))
	}
	if a, b := inReal[len(inReal)-1], inVirtual[len(inVirtual)-1]; a < b-apart || a > b+apart {
		found = append(found, fmt.Sprintf("%s at the end: %d wanted, in virtual time %d", who, a, b))
	}
	return found
}

func extent(counts []int) (least, most int) {
	least, most = counts[0], counts[0]
	for _, n := range counts {
		least, most = min(least, n), max(most, n)
	}
	return least, most
}

func peak(counts []int) int {
	_, most := extent(counts)
	return most
}
