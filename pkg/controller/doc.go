// Package controller is the loop of the autoscaler. Every round observes the
// cluster and its metrics, has package decision decide, acts on the plan and reports
// it:
//
//	observe.go  the cluster and the samples become a decision.Snapshot
//	(decision)  the snapshot becomes a decision.Plan
//	act.go      the plan becomes marks on the pods that are to go (victim.go), and
//	            writes of scale subresources
//	report.go   the plan becomes status and conditions (package report/status, written by
//	            statuses.go), events, log lines and gauges (package metrics)
//
// It decides when a round runs, and nothing about replicas. It must never compute a
// reason of its own for a view: what it finds out beside the decision (a missing
// permission, another autoscaler on the target) is put into the plan first, in
// annotate.go, and every view is rendered from there. It must never write what is
// already so, nor over a change of somebody else. When a scale-down is cancelled, it
// removes its marks from the pods. It finds them in the cluster and not in
// memory.
//
// What the loop decides by is followed beside it: the ConfigMaps in package settings.
//
// While there is nothing to decide by, nothing is written and the gauges never fall
// (safety.go). While a model sleeps, the queues of the gateways are looked at between the
// rounds (wake.go). Whose requests a gateway counts is settled in gateway.go alone.
//
// Everything that can time out is behind the Options of controller.go, which the program
// plugs adapters into; all else is read from the cache of the manager, by index. One
// goroutine decides and writes; it never waits for metrics, which are read beside it (readings.go).
//
// Read Loop first, then the four files above in their order.
package controller
