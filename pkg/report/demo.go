package report

import (
	"encoding/json"
	"fmt"
	"io"
)

// Synthetic is the name of the trace when the traffic was generated.
const Synthetic = "synthetic"

// Demo is the report of one run. Its JSON names are a published format. Every t is
// in seconds from the start of the traffic.
type Demo struct {
	// Trace is the file that drove the first model, or Synthetic.
	Trace string `json:"trace"`
	// Rate is how often every request of the trace was sent.
	Rate float64 `json:"rate"`
	// DurationSeconds is how long there was traffic; the tail is not in it.
	DurationSeconds   float64 `json:"durationSeconds"`
	KubernetesVersion string  `json:"kubernetesVersion"`
	// Mode is how the autoscaler sized: hybrid, for the SLO, or capacity-only, by saturation alone.
	// Aim is the share of the requests, 0 to 1, that was to meet the SLO; absent where saturation alone
	// sized. Profiles says that latency profiles were given.
	Mode       string      `json:"mode"`
	Aim        float64     `json:"aim,omitempty"`
	Profiles   bool        `json:"profilesGiven"`
	Requests   Requests    `json:"requests"`
	Models     []Model     `json:"models"`
	Variants   []Variant   `json:"variants"`
	Placements []Placement `json:"placements"`
	Decisions  []Decision  `json:"decisions"`
}

// Requests counts the requests that were sent, by what became of them.
type Requests struct {
	Total     int `json:"total"`
	Completed int `json:"completed"`
	Failed    int `json:"failed"`
}

// Model is what the clients of one model got.
type Model struct {
	Model string `json:"model"`
	SLO   SLO    `json:"slo"`
	// Attainment is the share of all requests that met the SLO, 0 to 1; nil
	// without requests.
	Attainment *float64 `json:"attainment"`
	// AttainmentWarm counts only the requests that arrived after the replicas of
	// the first scale-up were Ready; all of them when there was none.
	AttainmentWarm *float64    `json:"attainmentWarm"`
	TTFT           Percentiles `json:"ttftMs"`
	ITL            Percentiles `json:"itlMs"`
	// Comparison is what this and another autoscaler do with the same traffic in virtual
	// time; nil where nobody compared.
	Comparison *Comparison `json:"virtualTime,omitempty"`
}

// Comparison is one load in virtual time, with this autoscaler and with a
// HorizontalPodAutoscaler whose setting was chosen for that load by hindsight.
type Comparison struct {
	Own Compared `json:"own"`
	HPA Compared `json:"hpa"`
}

// Compared is what one autoscaler did.
type Compared struct {
	// Policy is its name with its settings, as kubectl wva replay takes it.
	Policy string `json:"policy"`
	// Attainment is the share of all requests that met the SLO, 0 to 1, and CostOverBound
	// the cost as a multiple of the bound, the least price of the load.
	Attainment    float64 `json:"attainment"`
	CostOverBound float64 `json:"costOverBound"`
}

// SLO is the promised latency in milliseconds.
type SLO struct {
	TTFT float64 `json:"ttftMs"`
	ITL  float64 `json:"itlMs"`
}

// Percentiles are of the completed requests, by nearest rank, in milliseconds; nil
// without requests.
type Percentiles struct {
	P50 *float64 `json:"p50"`
	P95 *float64 `json:"p95"`
	P99 *float64 `json:"p99"`
}

// Variant is what one variant did and cost.
type Variant struct {
	Name               string  `json:"name"`
	Model              string  `json:"model"`
	Accelerator        string  `json:"accelerator"`
	AcceleratorCount   int     `json:"acceleratorCount"`
	CostPerReplicaHour float64 `json:"costPerReplicaHour"`
	// Replicas has a point at 0, at every change and at the end.
	Replicas []ReplicaPoint `json:"replicas"`
	// ScaleWrites is the number of changes of the target's replicas.
	ScaleWrites int `json:"scaleWrites"`
	// GPUHours is the time for which pods of the variant held a node, from 0 to the
	// end, times their devices.
	GPUHours float64 `json:"gpuHours"`
	// Cost is the price of GPUHours.
	Cost float64 `json:"cost"`
}

// ReplicaPoint is the state of a variant's target from T on.
type ReplicaPoint struct {
	T       float64 `json:"t"`
	Desired int     `json:"desired"`
	Ready   int     `json:"ready"`
}

// Placement is one pod and the node that holds it.
type Placement struct {
	Pod     string `json:"pod"`
	Variant string `json:"variant"`
	Node    string `json:"node"`
	// Accelerator is what the node has; empty when it has none.
	Accelerator string `json:"accelerator"`
	// Scheduler is the one that the pod was given to.
	Scheduler string `json:"scheduler"`
}

// Decision is one change of a variant's wanted replicas.
type Decision struct {
	T       float64 `json:"t"`
	Variant string  `json:"variant"`
	From    int     `json:"from"`
	To      int     `json:"to"`
	Reason  string  `json:"reason"`
}

// WriteJSON writes the report, indented, with a final newline.
func (d Demo) WriteJSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(d); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}

// Misplaced are the placements on a node whose accelerator is not the variant's,
// or by another scheduler than the given one.
func (d Demo) Misplaced(scheduler string) []Placement {
	wanted := make(map[string]string, len(d.Variants))
	for _, v := range d.Variants {
		wanted[v.Name] = v.Accelerator
	}
	var wrong []Placement
	for _, p := range d.Placements {
		if p.Accelerator != wanted[p.Variant] || p.Scheduler != scheduler {
			wrong = append(wrong, p)
		}
	}
	return wrong
}
