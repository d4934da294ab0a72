package replay

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/simulation"
	"llmd.ai/workload-variant-autoscaler/pkg/workload"
)

// What the cluster shows of a node that fails at 2:00, and what our snapshot has of it.
func TestPoliciesSeeAnOutageAsTheClusterShowsIt(t *testing.T) {
	s := small()
	s.Models[0].Variants = s.Models[0].Variants[:1]
	s.Cluster.Nodes = nodes("h100", "H100", 2, 1)
	s.Events = []simulation.NodeEvent{{At: 2 * time.Minute, Node: 0, Kind: simulation.Failed}}
	source := short(t, workload.Point{Rate: 2}, workload.Point{At: 10 * time.Minute, Rate: 2})
	o := newOurs(s, true)
	looked := map[string]bool{}
	script := &scripted{every: 5 * time.Second, answer: func(_ int, view *View) Answer {
		pods := view.Models[0].Variants[0].Pods
		snapshot := o.snapshot(view)
		seen := snapshot.Models[0].Variants[0]
		var on *Pod
		for i := range pods {
			if pods[i].Node == 0 {
				on = &pods[i]
			}
		}
		name := view.Cluster.Nodes[0].Name
		switch now := view.Now; {
		case now < time.Minute:
		case now < 2*time.Minute:
			looked["before"] = true
			assert.Equal(t, 2, seen.Ready)
			assert.NotEmpty(t, on.Scrapes)
		case now > 2*time.Minute+15*time.Second && now < 2*time.Minute+simulation.NotReadyAfter:
			looked["nobody knows"] = true
			assert.Equal(t, 2, seen.Ready)
			assert.Empty(t, snapshot.Cluster.Nodes[0].Out)
			assert.Empty(t, on.Scrapes, "a scrape has failed since")
			for _, r := range seen.Replicas {
				assert.Equal(t, r.Node != name, r.Running.Present, "unknown and not zero")
			}
		case now >= 2*time.Minute+simulation.NotReadyAfter && now < 2*time.Minute+simulation.NotReadyAfter+simulation.EvictedAfter:
			looked["not ready"] = true
			assert.Equal(t, "not ready", snapshot.Cluster.Nodes[0].Out)
			assert.Equal(t, 1, seen.Ready)
			assert.Equal(t, 1, view.Models[0].Variants[0].Ready())
			require.Len(t, seen.Starting, 1)
			starting := seen.Starting[0]
			assert.Equal(t, name, starting.Node)
			assert.True(t, starting.Placed && starting.Held)
			assert.False(t, starting.Unschedulable || starting.Failing)
			assert.Equal(t, at(2*time.Minute+simulation.NotReadyAfter), starting.Since, "since when it does not serve")
		case now >= 2*time.Minute+simulation.NotReadyAfter+simulation.EvictedAfter:
			looked["evicted"] = true
			assert.Nil(t, on)
			require.Len(t, seen.Starting, 1)
			assert.True(t, seen.Starting[0].Unschedulable, "the other one has no room")
		}
		return Answer{Replicas: [][]int{{2}}}
	}}
	p := played(t, s, source, "static:1", time.Second)
	done := p.with(script, [][]int{{2}})
	require.NoError(t, done.err)
	assert.Len(t, looked, 4)
	assert.Equal(t, 1, done.result.UnplaceableReplicas)
	// The replica that failed holds its node until it is evicted, at 7:50.
	assert.InDelta(t, (10*60+470)/3600.0, done.result.ReplicaHours, 2.0/3600)
}

// A replica that starts again after its node was away is held all the time, and no more.
func TestAReplicaThatStartsAgainIsPaidOnce(t *testing.T) {
	s := small()
	s.Models[0].Variants = s.Models[0].Variants[:1]
	s.Cluster.Nodes = nodes("h100", "H100", 1, 1)
	s.Events = []simulation.NodeEvent{
		{At: 2 * time.Minute, Kind: simulation.Failed}, {At: 4 * time.Minute, Kind: simulation.Restored},
	}
	source := short(t, workload.Point{Rate: 2}, workload.Point{At: 6 * time.Minute, Rate: 2})
	failing := false
	o := newOurs(s, false)
	script := &scripted{every: 5 * time.Second, answer: func(_ int, view *View) Answer {
		starting := o.snapshot(view).Models[0].Variants[0].Starting
		failing = failing || view.Now >= 4*time.Minute && len(starting) == 1 && starting[0].Failing
		return Answer{Replicas: [][]int{{1}}}
	}}
	p := played(t, s, source, "static:1", 30*time.Second)
	done := p.with(script, [][]int{{1}})
	require.NoError(t, done.err)
	assert.True(t, failing, "its containers were restarted")
	assert.InDelta(t, 0.1, done.result.ReplicaHours, 1.0/3600)
	assert.Positive(t, done.result.Failed)
}
