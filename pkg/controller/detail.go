package controller

import (
	"context"

	"k8s.io/klog/v2"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

// detailed is the verbosity from which the log has the inputs and scores of decisions.
const detailed = 4

// logDetail logs what a round decided by, and what it made of that: one line for each
// model, variant and replica.
func logDetail(ctx context.Context, plan *decision.Plan, seen *observation) {
	log := klog.FromContext(ctx).V(detailed)
	if !log.Enabled() {
		return
	}
	for i := range seen.snapshot.Models {
		m := &seen.snapshot.Models[i]
		log.Info("Inputs of a model", "model", m.ID, "namespace", m.Namespace, "arrival", number64(m.Arrival), "queue", number64(m.Queue))
		for j := range m.Variants {
			v := &m.Variants[j]
			name := klog.KRef(m.Namespace, v.Name)
			log.Info("Inputs of a variant", "variant", name, "current", v.Current, "ready", v.Ready, "starting", len(v.Starting), "cost", v.Cost, "startup", v.Startup)
			for k := range v.Replicas {
				r := &v.Replicas[k]
				log.Info("Inputs of a replica", "variant", name, "pod", r.Name, "kvUse", number64(r.KVUse), "waiting", number64(r.Waiting), "running", number64(r.Running),
					"served", number64(r.Served), "ttft", number64(r.TTFT), "itl", number64(r.ITL))
			}
		}
	}
	for i := range plan.Models {
		m := &plan.Models[i]
		if m.Demand != nil {
			log.Info("Scores of a model", "model", m.ID, "namespace", m.Namespace, "arrival", m.Demand.Arrival, "forecast", m.Demand.Forecast, "backlog", m.Demand.Backlog,
				"triggered", m.Triggered, "sized", m.Sized, "serviceClass", m.Promise.Class)
		}
		for j := range m.Variants {
			p := &m.Variants[j]
			log.Info("Scores of a variant", "variant", klog.KRef(p.Key.Namespace, p.Key.Name), "servesEach", p.ServesEach, "slots", slotsOf(p), "desired", desiredOf(p),
				"reason", p.Reason, "steps", p.Steps)
		}
	}
}

// number64 is the value of a sample, or that it is unknown.
func number64(s decision.Sample) any {
	if !s.Present {
		return "unknown"
	}
	return s.Value
}

func slotsOf(p *decision.VariantPlan) any {
	if p.Slots == nil {
		return "unknown"
	}
	return p.Slots.Count
}

func desiredOf(p *decision.VariantPlan) any {
	if p.Desired == nil {
		return "none"
	}
	return *p.Desired
}
