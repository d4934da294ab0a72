package metrics

import (
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

// Metrics are all that the controller exposes.
type Metrics struct {
	gauges  *gauges
	quality *quality
}

// Round is what a round saw, beside its plan.
type Round struct {
	Snapshot decision.Snapshot
	// Believed is what was remembered before the round.
	Believed decision.Memory
	// Stale is the age from which a sample is not known any more.
	Stale time.Duration
	// Unlisted counts the nodes by product name that no rule knows.
	Unlisted map[string]int
	// Policy is what it was decided with.
	Policy decision.Policy
	// Priced are the variants of whose replicas somebody gave the price.
	Priced map[decision.Key]bool
	// ID is the variantID of a variant, or empty.
	ID func(decision.Key) string
}

// New makes the metrics of a controller instance, which may be empty; publishedNames has the
// earlier names too.
func New(instance string, publishedNames bool) *Metrics {
	labels := prometheus.Labels{}
	if instance != "" {
		labels["controller_instance"] = instance
	}
	m := &Metrics{gauges: newGauges(labels), quality: newQuality(labels)}
	if publishedNames {
		m.gauges.published = newPublished(labels)
	}
	return m
}

// Register has them served.
func (m *Metrics) Register(to prometheus.Registerer) error {
	var errs []error
	for _, c := range append(m.quality.collectors(), m.gauges) {
		errs = append(errs, to.Register(c))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("registering the metrics of the controller: %w", err)
	}
	return nil
}

// Show shows a plan to whoever scrapes it.
func (m *Metrics) Show(plan *decision.Plan, seen *Round) {
	m.gauges.last.Store(&shown{plan, seen})
	m.quality.see(plan)
}

// Last is the plan that is shown; nil before the first.
func (m *Metrics) Last() *decision.Plan {
	if last := m.gauges.last.Load(); last != nil {
		return last.plan
	}
	return nil
}

// Scaled notes that the replicas of a plan were written.
func (m *Metrics) Scaled(p *decision.VariantPlan) { m.quality.scaled(p) }

// Gone ends the series of a variant whose object is gone.
func (m *Metrics) Gone(key decision.Key) { m.quality.gone(key) }

// Ended notes that a round ended at a time.
func (m *Metrics) Ended(kind decision.Round, took time.Duration, at time.Time, err error) {
	m.quality.ended(kind, took, at, err)
}
