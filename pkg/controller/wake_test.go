package controller

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/controller/settings"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/round"
)

// gate is a gateway at which requests for model m arrive after a while. It counts the
// looks, and how many there are at a time.
type gate struct {
	began time.Time
	// arrives is when the requests begin to wait; negative means never.
	arrives time.Duration
	// takes is how long an answer takes.
	takes time.Duration
	// fails are the times between which it fails.
	fails, works time.Duration
	// lame is set when one of its addresses always fails.
	lame bool
	// blank is set when nothing is shown of the model before the first request.
	blank bool

	// namespace is what it says of the model's.
	namespace string

	lock     sync.Mutex
	looks    []time.Duration
	at, most int
}

func (g *gate) Queues(ctx context.Context, at time.Time) (map[decision.ModelKey]decision.Sample, error) {
	g.lock.Lock()
	since := time.Since(g.began)
	g.looks = append(g.looks, since)
	g.at++
	g.most = max(g.most, g.at)
	g.lock.Unlock()
	defer func() {
		g.lock.Lock()
		g.at--
		g.lock.Unlock()
	}()
	if g.takes > 0 {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(g.takes):
		}
	}
	if since >= g.fails && since < g.works {
		return nil, errors.New("no answer")
	}
	waits := 0.0
	if g.arrives >= 0 && since >= g.arrives {
		waits = 3
	}
	var err error
	if g.lame {
		err = errors.New("one address does not answer")
	}
	if g.blank && waits == 0 {
		return nil, err
	}
	return map[decision.ModelKey]decision.Sample{{Namespace: g.namespace, ID: "m"}: sample(waits, at)}, err
}

func (b *bench) listens(g *gate) *gate {
	g.began, b.Loop.queues = b.began, g.Queues
	return g
}

func TestASleepingModelWakesAtItsFirstRequest(t *testing.T) {
	for name, namespace := range map[string]string{"with its namespace": "n", "without a namespace": "", "with that of the gateway": "gateway"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, 0)
				g := b.listens(&gate{arrives: 11500 * time.Millisecond, namespace: namespace})
				rounds := b.run(t, 25*time.Second)
				assert.Equal(t, []string{"0 Full", "10 Fast", "12 Event", "20 Fast"}, rounds, "the spacing of events does not hold it up")
				assert.Equal(t, sample(3, b.began.Add(12*time.Second)), b.queues[2])
				assert.EqualValues(t, 1, b.replicas(t))
				assert.Len(t, g.looks, 13, "every second, and none once it is awake")
				assert.Equal(t, 12*time.Second, g.looks[12])
			})
		})
	}
}

// The same with the decision itself, and then the model is left alone.
func TestTheDecisionWakesASleepingModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 0)
		var d appsv1.Deployment
		require.NoError(t, b.api.Get(t.Context(), client.ObjectKey{Namespace: "n", Name: "d"}, &d))
		target, _ := bigTarget("n", "d")
		d.Spec.Template = target.Spec.Template
		require.NoError(t, b.api.Update(t.Context(), &d))
		next := *b.settings.Current()
		next.Idle = decision.Idle{Enabled: true, Retention: 10 * time.Minute}
		next.Drain, next.StartupDeadline = 2*time.Minute, 10*time.Minute
		b.settings = settings.Of(next)
		b.decide = func(s decision.Snapshot, p decision.Policy, m decision.Memory, kind decision.Round) (decision.Plan, decision.Memory) {
			b.note(kind, s)
			return decision.Decide(s, p, m, kind)
		}
		b.listens(&gate{arrives: 11500 * time.Millisecond})
		b.run(t, 11*time.Second)
		assert.EqualValues(t, 0, b.replicas(t), "it sleeps as long as nothing waits")
		rounds := b.run(t, 2*time.Second)
		assert.Equal(t, "12 Event", rounds[len(rounds)-1])
		assert.EqualValues(t, 1, b.replicas(t))
		assert.Contains(t, strings.Join(drained(b.recorder), "\n"), "Normal ScaledUp replicas from 0 to 1")
		assert.Equal(t, v1alpha1.ReasonScaleFromZeroMode, apimeta.FindStatusCondition(b.status(t).Conditions, v1alpha1.ConditionOptimizationReady).Reason)
	})
}

func TestNobodyLooksWhileNothingSleeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 1)
		g := b.listens(&gate{})
		b.run(t, time.Minute)
		assert.Empty(t, g.looks)
	})
}

func TestWithoutAGatewayRoundsReadTheQueues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 0)
		b.metrics = &hanging{}
		b.run(t, time.Second)
		assert.EqualValues(t, 1, b.replicas(t))
	})
}

func TestASlowGatewayIsAskedOnceAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 0)
		g := b.listens(&gate{arrives: 15 * time.Second, takes: 2500 * time.Millisecond})
		rounds := b.run(t, 25*time.Second)
		assert.Equal(t, []string{"0 Full", "10 Fast", "17.5 Event", "20 Fast"}, rounds, "and holds no round up")
		assert.Equal(t, 1, g.most)
		assert.EqualValues(t, 1, b.replicas(t))
	})
}

func TestAGatewayThatFails(t *testing.T) {
	for name, g := range map[string]*gate{
		"with an error":  {arrives: 40 * time.Second, works: 30 * time.Second},
		"without answer": {arrives: -1, takes: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, 0)
				b.listens(g)
				rounds := b.run(t, 39*time.Second)
				assert.Equal(t, []string{"0 Full", "10 Fast", "20 Fast", "30 Fast"}, rounds)
				for i := 5; i < len(g.looks) && g.looks[i] < g.works; i++ {
					assert.GreaterOrEqual(t, g.looks[i]-g.looks[i-1], round.LookSeldom)
				}
				assert.Len(t, b.logged("Not all gateways say"), 1, "told of once")
				if g.works > 0 {
					assert.Len(t, b.logged("All gateways say again"), 1)
					assert.Equal(t, time.Second, g.looks[len(g.looks)-1]-g.looks[len(g.looks)-2], "every second again")
				}
			})
		})
	}
}

func TestAGatewayThatFailsInPartIsAskedAsOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 0)
		g := b.listens(&gate{arrives: 11500 * time.Millisecond, fails: 2 * time.Second, works: 3 * time.Second, lame: true})
		rounds := b.run(t, 15*time.Second)
		assert.Equal(t, []string{"0 Full", "10 Fast", "12 Event"}, rounds)
		assert.EqualValues(t, 1, b.replicas(t))
		assert.Len(t, g.looks, 13)
		assert.Len(t, b.logged("whether requests wait"), 1, "told of once")
	})
}

// Of two addresses one never answers, each look waits a second for it, and the other one
// has nothing to show yet.
func TestAFirstRequestIsSeenInTimeBesideADeadAddress(t *testing.T) {
	for arrives := 30 * time.Second; arrives < 40*time.Second; arrives += 250 * time.Millisecond {
		t.Run(arrives.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, 0)
				b.listens(&gate{arrives: arrives, takes: time.Second, lame: true, blank: true})
				b.run(t, arrives+5*time.Second)
				assert.EqualValues(t, 1, b.replicas(t))
			})
		})
	}
}

func TestAModelThatCannotWakeTakesNotAllRounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 0)
		b.decide = b.sleepsOn
		b.listens(&gate{arrives: 2 * time.Second})
		rounds := b.run(t, 21*time.Second)
		assert.Equal(t, []string{"0 Full", "2 Event", "7 Event", "10 Fast", "12 Event", "17 Event", "20 Fast"}, rounds)
		assert.Len(t, b.logged("Requests wait"), 1, "told of when it begins")
	})
}

// counting are metrics of gateways that show an empty queue for model m under some
// namespaces, while something else cannot be read.
type counting struct{ namespaces []string }

func (c counting) Read(_ context.Context, at time.Time, _, _ time.Duration) (map[types.NamespacedName]decision.Replica, map[decision.ModelKey]decision.Model, error) {
	models := map[decision.ModelKey]decision.Model{}
	for _, namespace := range c.namespaces {
		models[decision.ModelKey{Namespace: namespace, ID: "m"}] = decision.Model{Namespace: namespace, ID: "m", Queue: sample(0, at)}
	}
	return nil, models, errors.New("one pod is silent")
}

func TestNewerReadingsCountAfterAWake(t *testing.T) {
	for _, as := range []string{"n", "", "gateway"} {
		for _, looked := range []string{"n", "", "gateway"} {
			t.Run("read as "+as+", seen as "+looked, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := newBench(t, 0)
					b.decide = b.sleepsOn
					b.metrics = counting{[]string{as}}
					b.listens(&gate{arrives: 2 * time.Second, namespace: looked})
					rounds := b.run(t, 11*time.Second)
					require.Equal(t, []string{"0 Full", "2 Event", "7 Event", "10 Fast"}, rounds)
					assert.Equal(t, sample(3, b.began.Add(7*time.Second)), b.queues[2])
					assert.Equal(t, sample(0, b.began.Add(10*time.Second)), b.queues[3])
				})
			})
		}
	}
}

// What gateways show and nobody can use is told of once: the administrator reads where it is shown, and
// the condition says which setting trusts it.
func TestGatewaysThatAreNotTrustedAreToldOf(t *testing.T) {
	for name, c := range map[string]struct {
		namespaces []string
		told       bool
	}{
		"nothing is counted":   {nil, false},
		"its own":              {[]string{"n", "other"}, false},
		"nobody's":             {[]string{""}, false},
		"one that is trusted":  {[]string{"gateway", "other"}, false},
		"one that is not":      {[]string{"other"}, true},
		"several that are not": {[]string{"c", "b", "e", "d"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, 1)
				b.metrics = counting{c.namespaces}
				b.run(t, 35*time.Second)
				log := b.logged("GATEWAY_NAMESPACES")
				ready := apimeta.FindStatusCondition(b.status(t).Conditions, v1alpha1.ConditionOptimizationReady)
				if !c.told {
					assert.Empty(t, log)
					assert.NotEqual(t, v1alpha1.ReasonGatewayNotTrusted, ready.Reason)
					return
				}
				require.Len(t, log, 1, "told of once")
				assert.Equal(t, v1alpha1.ReasonGatewayNotTrusted, ready.Reason)
				assert.Contains(t, ready.Message, "GATEWAY_NAMESPACES")
				assert.NotContains(t, ready.Message, c.namespaces[0]+"\"", "whoever reads the object may not know other namespaces")
				assert.Empty(t, strings.Join(drained(b.recorder), "\n"), "strangers cause no events")
			})
		})
	}
}

// An object of another namespace with the same model ID neither keeps a model asleep nor takes what its
// gateway counts, whether that is in a namespace of its own or in none.
func TestAnObjectElsewhereHoldsNoModelAsleep(t *testing.T) {
	stranger := &v1alpha1.VariantAutoscaling{
		ObjectMeta: metav1.ObjectMeta{Namespace: "b", Name: "v", UID: "stranger"},
		Spec:       v1alpha1.VariantAutoscalingSpec{ModelID: "m", Actuation: v1alpha1.ActuationOff, ScaleTargetRef: v1alpha1.ScaleTargetReference{Name: "none"}, AlsoServes: []string{"m"}},
	}
	for _, namespace := range []string{"n", "", "gateway"} {
		t.Run("a gateway in "+namespace, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, 0, stranger.DeepCopy())
				b.listens(&gate{arrives: 11500 * time.Millisecond, namespace: namespace})
				rounds := b.run(t, 15*time.Second)
				assert.Equal(t, []string{"0 Full", "10 Fast", "12 Event"}, rounds)
				assert.EqualValues(t, 1, b.replicas(t))
			})
		})
	}
}

func TestAStrangersQueueWakesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 0)
		b.listens(&gate{namespace: "b"})
		assert.Equal(t, []string{"0 Full", "10 Fast"}, b.run(t, 15*time.Second))
		assert.EqualValues(t, 0, b.replicas(t))
	})
}

// sleeping are models that sleep.
func sleeping(models ...decision.ModelKey) *round.Sleepers {
	s := &round.Sleepers{}
	s.Settle(models)
	return s
}

func TestOldQueuesWakeNobody(t *testing.T) {
	key := decision.ModelKey{Namespace: "n", ID: "m"}
	s, h := sleeping(key), hear([]*decision.Model{{Namespace: "n", ID: "m"}}, nil)
	queue := func(value float64, at time.Time) map[decision.ModelKey]decision.Sample {
		return map[decision.ModelKey]decision.Sample{{ID: "m"}: sample(value, at)}
	}
	since := noon.Add(-2 * time.Minute)
	assert.Empty(t, called(s, h, noon, since, nil), "nobody says")
	assert.Empty(t, called(s, h, noon, since, queue(0, noon)), "nothing waits")
	assert.Empty(t, called(s, h, noon, since, queue(3, since)), "too old")
	assert.Empty(t, called(s, h, noon, since, map[decision.ModelKey]decision.Sample{{Namespace: "x", ID: "m"}: sample(3, noon)}), "a stranger says")
	assert.Equal(t, []waiting{{key, decision.ModelKey{ID: "m"}, sample(3, noon), true}}, called(s, h, noon, since, queue(3, noon)))
}

func TestWaitingIsToldOfWhenItBegins(t *testing.T) {
	key := decision.ModelKey{Namespace: "n", ID: "m"}
	s, h := sleeping(key), hear([]*decision.Model{{Namespace: "n", ID: "m"}}, nil)
	for _, step := range []struct {
		after time.Duration
		queue decision.Sample
		told  bool
	}{
		{0, sample(3, noon), true},
		{1 * time.Second, sample(3, noon.Add(1*time.Second)), false},
		{6 * time.Second, sample(4, noon.Add(6*time.Second)), false},
		{7 * time.Second, decision.Sample{}, false},
		{12 * time.Second, sample(4, noon.Add(12*time.Second)), false},
		{13 * time.Second, sample(0, noon.Add(13*time.Second)), false},
		{14 * time.Second, sample(1, noon.Add(14*time.Second)), false},
		{18 * time.Second, sample(1, noon.Add(18*time.Second)), true},
		{23 * time.Second, sample(1, noon.Add(23*time.Second)), false},
	} {
		now := noon.Add(step.after)
		waits := called(s, h, now, now.Add(-time.Minute), map[decision.ModelKey]decision.Sample{key: step.queue})
		assert.Equal(t, step.told, slices.ContainsFunc(waits, func(w waiting) bool { return w.begins }), "after %s", step.after)
	}
}

func TestANewerQueueLeavesTheRestOfAModel(t *testing.T) {
	key := decision.ModelKey{Namespace: "n", ID: "m"}
	before := readings{at: noon, models: map[decision.ModelKey]decision.Model{{ID: "m"}: {ID: "m", Arrival: sample(2, noon), Queue: sample(0, noon)}}}
	later, h := noon.Add(time.Second), hear([]*decision.Model{{Namespace: "n", ID: "m"}}, nil)
	wanted := []waiting{{key, key, sample(3, later), true}}
	after := before.withQueues(h, wanted)
	assert.Equal(t, map[decision.ModelKey]decision.Model{{ID: "m"}: {ID: "m", Arrival: sample(2, noon), Queue: sample(3, later)}}, after.models)
	assert.Equal(t, sample(0, noon), before.models[decision.ModelKey{ID: "m"}].Queue, "the reading before is not changed")
	assert.Equal(t, noon, after.at)
	assert.Equal(t, map[decision.ModelKey]decision.Model{key: {Namespace: "n", ID: "m", Queue: sample(3, later)}}, readings{}.withQueues(h, wanted).models)
}

func TestWhichModelsSleep(t *testing.T) {
	type one struct {
		current int32
		state   decision.TargetState
		acts    decision.Actuation
		written *int32
	}
	cases := []struct {
		name     string
		variants []one
		want     bool
	}{
		{"none of its targets exists", []one{{state: decision.TargetMissing}}, false},
		{"it serves", []one{{current: 1}}, false},
		{"it sleeps", []one{{}, {}}, true},
		{"one of two serves", []one{{}, {current: 1}}, false},
		{"the other target is missing", []one{{}, {state: decision.TargetMissing}}, true},
		{"it was sent to sleep just now", []one{{current: 1, written: ptr.To[int32](0)}}, true},
		{"it was woken just now", []one{{written: ptr.To[int32](1)}}, false},
		{"only the metric is followed", []one{{acts: decision.ActuationMetric}}, true},
		{"nobody may wake it", []one{{acts: decision.ActuationOff}, {state: decision.TargetConflict}}, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			m := decision.ModelPlan{Namespace: "n", ID: "m"}
			seen := &observation{variants: map[decision.Key]*variant{}, policy: decision.Policy{Variants: map[decision.Key]decision.VariantPolicy{}}}
			outcomes := map[decision.Key]outcome{}
			for i, o := range c.variants {
				key := decision.Key{Namespace: "n", Name: string(rune('a' + i))}
				m.Variants = append(m.Variants, decision.VariantPlan{Key: key})
				v := &variant{object: &v1alpha1.VariantAutoscaling{}, key: key, target: target{state: o.state}}
				if o.state != decision.TargetMissing {
					v.target.scale = &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: o.current}}
				}
				seen.variants[key] = v
				policy := decision.DefaultVariantPolicy()
				if o.acts != "" {
					policy.Actuation = o.acts
				}
				seen.policy.Variants[key] = policy
				if o.written != nil {
					outcomes[key] = outcome{scale: &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: *o.written}}}
				}
			}
			var want []decision.ModelKey
			if c.want {
				want = []decision.ModelKey{{Namespace: "n", ID: "m"}}
			}
			assert.Equal(t, want, asleep(&decision.Plan{Models: []decision.ModelPlan{m}}, seen, outcomes))
		})
	}
}
