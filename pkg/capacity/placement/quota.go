package placement

import (
	"fmt"
	"math"
	"strings"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// Quota is what the pods of a namespace may take of one resource in all, whatever the
// nodes have.
type Quota struct {
	// Namespace and Name are those of the object, Resource is what it counts.
	Namespace, Name, Resource string
	// Hard is what may be taken, Left what is not taken: CPU in thousandths of a core,
	// memory in bytes. Left is negative where more was taken before the quota came.
	Hard, Left int64
}

// says is why the quota allows no more: "quota gpus of namespace team: 4 of
// requests.nvidia.com/gpu left".
func (q *Quota) says(charge Amount) string {
	why := charge.Name
	if why == "" {
		left := fmt.Sprint(max(q.Left, 0))
		switch {
		case strings.HasSuffix(q.Resource, "cpu"):
			left = cores(max(q.Left, 0))
		case strings.HasSuffix(q.Resource, "memory"):
			left = gibibytes(max(q.Left, 0))
		}
		why = fmt.Sprintf("%s of %s left", left, q.Resource)
	}
	return fmt.Sprintf("quota %s of namespace %s: %s", q.Name, q.Namespace, why)
}

func cores(milliCPU int64) string { return fmt.Sprintf("%.4g cores", float64(milliCPU)/1000) }

func gibibytes(bytes int64) string { return fmt.Sprintf("%.4g GiB", float64(bytes)/(1<<30)) }

// Allowed is how many more replicas of the request the quotas allow, and which of them
// allows the fewest; without a quota the number is the largest there is.
func (c *Cluster) Allowed(r *Request) (replicas int, by string) {
	replicas = math.MaxInt
	least := -1
	for i, a := range r.Charges {
		if allowed := max(c.Quotas[a.Index].Left, 0) / max(a.Count, 1); a.Count > 0 && allowed < int64(replicas) {
			replicas, least = int(allowed), i
		}
	}
	if least < 0 {
		return replicas, ""
	}
	return replicas, c.Quotas[r.Charges[least].Index].says(r.Charges[least])
}

// Charge takes what so many replicas count against the quotas; a negative number gives it
// back. Place and Put charge, and Remove gives back; a pod that is there has been counted
// already, whether a node holds it or not.
func (c *Cluster) Charge(r *Request, count int) {
	for _, a := range r.Charges {
		q := &c.Quotas[a.Index]
		q.Left = capacity.Minus(q.Left, capacity.Times(a.Count, int64(count)))
	}
}
