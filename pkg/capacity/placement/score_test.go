package placement

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

func benchCluster(nodes int) *Cluster {
	c := &Cluster{}
	for i := range nodes {
		a := []capacity.Accelerator{"H100", "A100", "L40S", "H200", "MI300X"}[i%5]
		n := gpuNode(fmt.Sprint("n", i), a, 8, i%9)
		n.Free.MilliCPU = int64(i%193) * 1000
		c.Nodes = append(c.Nodes, n)
	}
	return c
}

func TestScoringAllocatesNothing(t *testing.T) {
	n := gpuNode("a", "H100", 8, 5)
	shape := gpus(1, "H100").Shape
	table := NewTable(outlookOf(200), benchCluster(100))
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		_ = table.Score(&n, shape, 0, 0)
		_ = (*Table)(nil).Score(&n, shape, 0, 0)
		_ = n.Verdict(shape)
	}))
}

func BenchmarkScore(b *testing.B) {
	n := gpuNode("a", "H100", 8, 5)
	shape := gpus(1, "H100").Shape
	for _, shapes := range []int{0, 5, 200} {
		table := NewTable(outlookOf(shapes), benchCluster(5000))
		b.Run(fmt.Sprintf("shapes=%d", shapes), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_ = table.Score(&n, shape, 0, 0)
			}
		})
	}
}

func BenchmarkNewTable(b *testing.B) {
	c, outlook := benchCluster(5000), outlookOf(200)
	b.ReportAllocs()
	for b.Loop() {
		_ = NewTable(outlook, c)
	}
}

func BenchmarkRefresh(b *testing.B) {
	c := benchCluster(5000)
	table := NewTable(outlookOf(200), c)
	b.ReportAllocs()
	for b.Loop() {
		_ = table.Refresh(c)
	}
}
