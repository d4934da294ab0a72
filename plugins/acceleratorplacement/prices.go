package acceleratorplacement

import (
	"slices"
	"sync"
	"sync/atomic"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
)

// refreshShare bounds what looking at the nodes costs each pod: the table does it
// again after one pod with devices for each so many nodes. What is scarce moves the
// more slowly the more nodes there are.
const refreshShare = 16

// prices hold the table that says what room is worth.
type prices struct {
	table atomic.Pointer[placement.Table]
	// pods counts those since the last refresh.
	pods atomic.Int64

	mu       sync.Mutex
	expected placement.Outlook
}

// expect takes over what is expected now. The table is only built anew when that has
// changed, which can take a while and must not keep a pod waiting.
func (p *prices) expect(outlook placement.Outlook, c *placement.Cluster) {
	p.mu.Lock()
	defer p.mu.Unlock()
	old := p.table.Load()
	if old != nil && (outlook == nil) == (p.expected == nil) && slices.EqualFunc(outlook, p.expected, same) {
		p.table.CompareAndSwap(old, old.Refresh(c))
		return
	}
	p.expected = outlook
	p.table.Store(placement.NewTable(outlook, c))
}

func same(a, b placement.Expected) bool {
	return a.Shape == b.Shape && a.Weight == b.Weight && a.Waiting == b.Waiting && slices.Equal(a.Also, b.Also)
}

// refresh has the table look at the nodes once every few pods with devices.
func (p *prices) refresh(s *snapshot) {
	if p.pods.Add(1) <= int64(len(s.infos)/refreshShare) {
		return
	}
	p.pods.Store(0)
	// When a new table comes meanwhile, that one stays.
	if old := p.table.Load(); old != nil {
		p.table.CompareAndSwap(old, old.Refresh(s.cluster()))
	}
}

// cluster is the nodes as they are now.
func (s *snapshot) cluster() *placement.Cluster {
	c := &placement.Cluster{Nodes: make([]placement.Node, len(s.infos))}
	for i, info := range s.infos {
		c.Nodes[i] = nodeOf(s.what[i], info, nil)
	}
	return c
}
