package hpa

import (
	"math"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/replay/horizontal"
)

// objectOf is an HPA with those rules.
func objectOf(a *horizontal.Autoscaler, target int64, tolerance float64, outside bool) *autoscalingv2.HorizontalPodAutoscaler {
	value := autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: resource.NewMilliQuantity(target, resource.DecimalSI)}
	metric := autoscalingv2.MetricSpec{Type: autoscalingv2.PodsMetricSourceType, Pods: &autoscalingv2.PodsMetricSource{
		Metric: autoscalingv2.MetricIdentifier{Name: "waiting"}, Target: value,
	}}
	if outside {
		metric = autoscalingv2.MetricSpec{Type: autoscalingv2.ExternalMetricSourceType, External: &autoscalingv2.ExternalMetricSource{
			Metric: autoscalingv2.MetricIdentifier{Name: "waiting"}, Target: value,
		}}
	}
	object := &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "model"},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "model"},
			MinReplicas:    ptr.To(int32(a.Min)), MaxReplicas: int32(a.Max),
			Metrics: []autoscalingv2.MetricSpec{metric},
		},
	}
	if a.Behavior != nil {
		object.Spec.Behavior = &autoscalingv2.HorizontalPodAutoscalerBehavior{
			ScaleUp: rulesOf(a.Behavior.Up, tolerance), ScaleDown: rulesOf(a.Behavior.Down, tolerance),
		}
	}
	return object
}

// rulesOf are those of one direction.
func rulesOf(b decision.Behavior, tolerance float64) *autoscalingv2.HPAScalingRules {
	selection := map[decision.Select]autoscalingv2.ScalingPolicySelect{
		decision.SelectMax: autoscalingv2.MaxChangePolicySelect, decision.SelectMin: autoscalingv2.MinChangePolicySelect,
		decision.SelectDisabled: autoscalingv2.DisabledPolicySelect,
	}[b.Select]
	rules := &autoscalingv2.HPAScalingRules{
		StabilizationWindowSeconds: ptr.To(int32(b.Window / time.Second)), SelectPolicy: &selection,
		Tolerance: resource.NewMilliQuantity(int64(math.Round(tolerance*1000)), resource.DecimalSI),
	}
	for _, p := range b.Policies {
		policy := autoscalingv2.HPAScalingPolicy{Type: autoscalingv2.PodsScalingPolicy, Value: int32(p.Pods), PeriodSeconds: int32(p.Period / time.Second)}
		if p.Percent > 0 {
			policy.Type, policy.Value = autoscalingv2.PercentScalingPolicy, int32(p.Percent)
		}
		rules.Policies = append(rules.Policies, policy)
	}
	return rules
}

// randomBehavior is one direction of what an API server takes.
func randomBehavior(random *rand.Rand) decision.Behavior {
	b := decision.Behavior{Window: time.Duration(random.IntN(12)) * 11 * time.Second, Select: decision.SelectMax}
	switch random.IntN(8) {
	case 0, 1:
		b.Select = decision.SelectMin
	case 2:
		b.Select = decision.SelectDisabled
	}
	for range 1 + random.IntN(3) {
		p := decision.RatePolicy{Period: time.Duration(1+random.IntN(120)) * time.Second, Pods: 1 + random.IntN(6)}
		if random.IntN(2) == 0 {
			p.Pods, p.Percent = 0, 1+random.IntN(150)
		}
		b.Policies = append(b.Policies, p)
	}
	return b
}

// readings are the world's pods as the replay has them.
func (w *world) readings() []horizontal.Reading {
	var all []horizontal.Reading
	for _, p := range w.pods {
		all = append(all, horizontal.Reading{Pending: p.pending, Present: !p.silent, Value: horizontal.Milli(p.value)})
	}
	return all
}

// change lets the world go on by one round.
func (w *world) change(random *rand.Rand, load *float64, target int64) {
	*load = max(0, *load*(0.6+0.9*random.Float64()))
	if random.IntN(15) == 0 {
		*load = random.Float64() * 80
	}
	if random.IntN(25) == 0 {
		w.replicas = int32(1 + random.IntN(60)) // somebody else's change
	}
	w.pods = make([]pod, w.replicas)
	broken := random.IntN(4) == 0
	for i := range w.pods {
		w.pods[i].value = int64(*load * float64(target) / float64(max(w.replicas, 1)) * (0.8 + 0.4*random.Float64()))
		w.pods[i].pending = broken && random.IntN(4) == 0
		w.pods[i].silent = w.pods[i].pending || broken && random.IntN(4) == 0
	}
	w.outside = int64(*load * float64(target))
	if random.IntN(20) == 0 {
		w.outside = -1
	}
}

// Round by round, on random fleets with random objects, the replicas are those of Kubernetes'
// own controller.
func TestTheReplayIsTheController(t *testing.T) {
	for seed := range uint64(120) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			ours := &horizontal.Autoscaler{Min: 1 + random.IntN(3), Max: 5 + random.IntN(80), Wake: step}
			tolerance, target, outside := horizontal.Tolerance, int64(1+random.IntN(9000)), random.IntN(2) == 0
			if random.IntN(3) > 0 {
				ours.Behavior = &horizontal.Behavior{Up: randomBehavior(random), Down: randomBehavior(random)}
				tolerance = float64(random.IntN(300)) / 1000
			}
			w := &world{replicas: int32(1 + random.IntN(50))}
			load := random.Float64() * 60
			sync := w.controlled(t, objectOf(ours, target, tolerance, outside))
			for round := range 60 {
				w.change(random, &load, target)
				got := ours.Reconcile(time.Duration(round)*step, int(w.replicas), func() (int, bool) {
					if outside {
						return horizontal.SharedReplicas(horizontal.Milli(w.outside), len(w.pods), horizontal.Milli(target), tolerance), w.outside >= 0
					}
					return horizontal.AverageReplicas(w.readings(), int(w.replicas), horizontal.Milli(target), tolerance)
				})
				before := w.replicas
				sync()
				require.EqualValues(t, w.replicas, got, "seed %d, round %d, from %d, behavior %+v, external %t, world %+v", seed, round, before, ours.Behavior, outside, w)
			}
		})
	}
}
