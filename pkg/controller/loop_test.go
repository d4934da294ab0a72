package controller

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/config"
	"llmd.ai/workload-variant-autoscaler/pkg/controller/metrics"
	"llmd.ai/workload-variant-autoscaler/pkg/controller/settings"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/inventory"
	"llmd.ai/workload-variant-autoscaler/pkg/round"
)

// bench is a loop over one variant, v of model m in namespace n, in front of an API
// server that holds its target. It runs in the time of a synctest bubble.
type bench struct {
	*Loop
	api      client.Client
	recorder *events.FakeRecorder
	began    time.Time

	lock   sync.Mutex
	rounds []string
	queues []decision.Sample
	logs   []string
}

// fieldIndexer gives a fake client the indexes of the cache.
type fieldIndexer struct{ *fake.ClientBuilder }

func (x fieldIndexer) IndexField(_ context.Context, object client.Object, field string, values client.IndexerFunc) error {
	x.WithIndex(object, field, values)
	return nil
}

func newBench(t *testing.T, replicas int32, objects ...client.Object) *bench {
	t.Helper()
	objects = append(objects,
		&v1alpha1.VariantAutoscaling{
			ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "v", UID: "va"},
			Spec:       v1alpha1.VariantAutoscalingSpec{ModelID: "m", ScaleTargetRef: v1alpha1.ScaleTargetReference{Name: "d"}},
		},
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "d", UID: "d"}, Spec: appsv1.DeploymentSpec{Replicas: &replicas}},
	)
	builder := fake.NewClientBuilder().WithScheme(everything(t)).WithStatusSubresource(&v1alpha1.VariantAutoscaling{}).WithObjects(objects...)
	require.NoError(t, addIndexes(t.Context(), fieldIndexer{builder}, Access{}))
	b := &bench{api: builder.Build(), recorder: events.NewFakeRecorder(1000), began: time.Now()}
	ready := make(chan struct{})
	close(ready)
	written, events := newOverlay(), newTrigger()
	b.Loop = &Loop{
		observer: &observer{
			reader: b.api, targets: &targetFinder{reader: b.api, scaler: b, overlay: written}, names: &inventory.Names{}, startups: &round.Startups{},
			trusted: []string{"gateway"},
		},
		actor: &actor{scaler: b, overlay: written},
		reporter: &reporter{
			statuses: newStatuses(b.api), recorder: b.recorder, overlay: written, metrics: metrics.New("", false),
			failures: map[decision.Key]string{}, net: safetyNet{},
		},
		metrics:     still{},
		settings:    settings.Of(config.Dynamic{Interval: time.Minute, Freshness: decision.DefaultPolicy().Freshness}),
		permissions: newPermissions(Access{}, nil, events),
		trigger:     events, ready: ready,
		arrived: make(chan readings, 1), looked: make(chan found[decision.Sample], 1),
	}
	b.decide = b.wakes
	return b
}

// wakes is a decision that holds what there is, and wakes what sleeps and is asked for.
func (b *bench) wakes(s decision.Snapshot, _ decision.Policy, m decision.Memory, kind decision.Round) (decision.Plan, decision.Memory) {
	b.note(kind, s)
	plan := decision.Plan{Time: s.Time, Round: kind}
	for _, m := range s.Models {
		decided := decision.ModelPlan{Namespace: m.Namespace, ID: m.ID}
		for _, v := range m.Variants {
			desired := v.Current
			if desired == 0 && m.Queue.Present && m.Queue.Value > 0 {
				desired = 1
			}
			decided.Variants = append(decided.Variants, decision.VariantPlan{
				Key: decision.Key{Namespace: m.Namespace, Name: v.Name}, Current: v.Current, Desired: &desired,
				Steps: []decision.Step{{Reason: decision.ReasonSteady}}, Reason: decision.ReasonSteady, Message: decision.Words("as it is"),
			})
		}
		plan.Models = append(plan.Models, decided)
	}
	return plan, m
}

// sleepsOn is a decision that changes nothing.
func (b *bench) sleepsOn(s decision.Snapshot, p decision.Policy, m decision.Memory, kind decision.Round) (decision.Plan, decision.Memory) {
	queue := s.Models[0].Queue
	s.Models[0].Queue = decision.Sample{}
	plan, m := b.wakes(s, p, m, kind)
	b.queues[len(b.queues)-1] = queue
	return plan, m
}

func (b *bench) note(kind decision.Round, s decision.Snapshot) {
	b.lock.Lock()
	defer b.lock.Unlock()
	b.rounds = append(b.rounds, fmt.Sprintf("%g %s", s.Time.Sub(b.began).Seconds(), kind))
	b.queues = append(b.queues, s.Models[0].Queue)
}

// Read and Write make the bench a Scaler.
func (b *bench) Read(context.Context, string, autoscalingv1.CrossVersionObjectReference) (*autoscalingv1.Scale, error) {
	return nil, errors.New("all targets are in the cache")
}

func (b *bench) Write(ctx context.Context, namespace string, ref autoscalingv1.CrossVersionObjectReference, _ *autoscalingv1.Scale, replicas int32) (*autoscalingv1.Scale, error) {
	var d appsv1.Deployment
	if err := b.api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: ref.Name}, &d); err != nil {
		return nil, err
	}
	d.Spec.Replicas = &replicas
	if err := b.api.Update(ctx, &d); err != nil {
		return nil, err
	}
	return &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: ref.Name, UID: d.UID, ResourceVersion: d.ResourceVersion},
		Spec:       autoscalingv1.ScaleSpec{Replicas: replicas},
	}, nil
}

func (b *bench) replicas(t *testing.T) int32 {
	t.Helper()
	var d appsv1.Deployment
	require.NoError(t, b.api.Get(t.Context(), client.ObjectKey{Namespace: "n", Name: "d"}, &d))
	return *d.Spec.Replicas
}

func (b *bench) status(t *testing.T) v1alpha1.VariantAutoscalingStatus {
	t.Helper()
	var va v1alpha1.VariantAutoscaling
	require.NoError(t, b.api.Get(t.Context(), client.ObjectKey{Namespace: "n", Name: "v"}, &va))
	return va.Status
}

// logging is a context whose log is kept.
func (b *bench) logging(t *testing.T) context.Context {
	t.Helper()
	return b.loggingAt(t, 0)
}

// loggingAt is one that is kept up to a verbosity.
func (b *bench) loggingAt(t *testing.T, verbosity int) context.Context {
	t.Helper()
	return logr.NewContext(t.Context(), funcr.New(func(_, line string) {
		b.lock.Lock()
		defer b.lock.Unlock()
		b.logs = append(b.logs, line)
	}, funcr.Options{Verbosity: verbosity}))
}

// run runs the loop for a while and returns which rounds began when.
func (b *bench) run(t *testing.T, length time.Duration) []string {
	t.Helper()
	ctx, cancel := context.WithCancel(b.logging(t))
	ended := make(chan error, 1)
	go func() { ended <- b.Start(ctx) }()
	<-time.After(length)
	synctest.Wait()
	b.lock.Lock()
	rounds := b.rounds
	b.lock.Unlock()
	cancel()
	require.NoError(t, <-ended)
	synctest.Wait()
	return rounds
}

// logged are the kept lines that hold a text.
func (b *bench) logged(text string) []string {
	b.lock.Lock()
	defer b.lock.Unlock()
	var found []string
	for _, line := range b.logs {
		if strings.Contains(line, text) {
			found = append(found, line)
		}
	}
	return found
}

// still are metrics of which there are none.
type still struct{}

func (still) Read(context.Context, time.Time, time.Duration, time.Duration) (map[types.NamespacedName]decision.Replica, map[decision.ModelKey]decision.Model, error) {
	return nil, nil, nil
}

// hanging are metrics that are there once, and then never answer.
type hanging struct{ reads int }

func (h *hanging) Read(ctx context.Context, at time.Time, _, _ time.Duration) (map[types.NamespacedName]decision.Replica, map[decision.ModelKey]decision.Model, error) {
	h.reads++
	if h.reads == 1 {
		return nil, map[decision.ModelKey]decision.Model{{ID: "m"}: {ID: "m", Queue: sample(4, at)}}, nil
	}
	<-ctx.Done()
	return nil, nil, ctx.Err()
}

func TestRoundsGoOnWhileNobodyAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 1)
		b.metrics = &hanging{}
		rounds := b.run(t, 65*time.Second)
		assert.Equal(t, []string{"0 Full", "20 Fast", "30 Fast", "40 Fast", "50 Fast", "60 Fast"}, rounds, "each waits ten seconds for its reading")
		for _, queue := range b.queues {
			assert.Equal(t, sample(4, b.began), queue, "what was known is there, with its time")
		}
	})
}

// faulty are metrics of which each reading says one thing.
type faulty struct{ errs []error }

func (f *faulty) Read(context.Context, time.Time, time.Duration, time.Duration) (map[types.NamespacedName]decision.Replica, map[decision.ModelKey]decision.Model, error) {
	if len(f.errs) == 0 {
		return nil, nil, nil
	}
	err := f.errs[0]
	f.errs = f.errs[1:]
	return nil, nil, err
}

func TestWhatIsWrongWithReadingsIsLoggedWhenItChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 1)
		one, other := errors.New("n/a is silent"), errors.New("n/b is silent")
		b.metrics = &faulty{errs: []error{nil, one, one, other, other, nil, nil, one}}
		b.run(t, 75*time.Second)
		var told []string
		for _, line := range b.logged("etrics ") {
			for _, about := range []string{"n/a is silent", "n/b is silent", "again"} {
				if strings.Contains(line, about) {
					told = append(told, about)
				}
			}
		}
		assert.Equal(t, []string{"n/a is silent", "n/b is silent", "again", "n/a is silent"}, told)
	})
}

// podAskers are metrics that ask the pods.
type podAskers struct {
	err      error
	followed [][]string
	read     []int
}

func (p *podAskers) Follow(pods []*corev1.Pod) {
	var names []string
	for _, pod := range pods {
		names = append(names, pod.Namespace+"/"+pod.Name)
	}
	p.followed = append(p.followed, names)
}

func (p *podAskers) Read(context.Context, time.Time, time.Duration, time.Duration) (map[types.NamespacedName]decision.Replica, map[decision.ModelKey]decision.Model, error) {
	p.read = append(p.read, len(p.followed))
	return nil, nil, p.err
}

// One pod of somebody else is silent, and a model sleeps or serves in the dark.
func TestASilentPodOfAnotherNamespace(t *testing.T) {
	elsewhere := silent{"other/pod-7": "10.0.0.7 is silent"}
	for name, c := range map[string]struct {
		facts []decision.Fact
		ready metav1.ConditionStatus
	}{
		"nothing serves":   {nil, metav1.ConditionTrue},
		"nothing is known": {[]decision.Fact{{Reason: decision.ReasonMetricsMissing, Detail: decision.Words("0 of 2")}}, metav1.ConditionFalse},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, 0)
				b.metrics = &podAskers{err: errors.Join(elsewhere)}
				b.decide = func(s decision.Snapshot, p decision.Policy, m decision.Memory, kind decision.Round) (decision.Plan, decision.Memory) {
					plan, m := b.wakes(s, p, m, kind)
					plan.Models[0].Variants[0].Facts = c.facts
					return plan, m
				}
				b.run(t, 15*time.Second)
				conditions := b.status(t).Conditions
				require.NotNil(t, apimeta.FindStatusCondition(conditions, v1alpha1.ConditionReady))
				assert.Equal(t, c.ready, apimeta.FindStatusCondition(conditions, v1alpha1.ConditionReady).Status)
				assert.Equal(t, c.ready, apimeta.FindStatusCondition(conditions, v1alpha1.ConditionMetricsAvailable).Status)
				for _, condition := range conditions {
					assert.NotContains(t, condition.Message, "pod-7", condition.Type)
				}
				assert.NotContains(t, strings.Join(drained(b.recorder), "\n"), "pod-7")
				assert.Len(t, b.logged(elsewhere.Error()), 1, "whoever runs the autoscaler is told, once")
			})
		})
	}
}

func TestMetricsThatAskPodsKnowThem(t *testing.T) {
	owned := func(name string, change func(*corev1.Pod)) client.Object {
		pod := server(name, 60)
		pod.Namespace = "n"
		pod.OwnerReferences = []metav1.OwnerReference{{Name: "s", UID: "s", Controller: ptr.To(true)}}
		change(pod)
		return pod
	}
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, 1,
			&appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "s", UID: "s", OwnerReferences: []metav1.OwnerReference{{Name: "d", UID: "d", Controller: ptr.To(true)}}}},
			owned("serves", readyAfter(30)), owned("starts", func(*corev1.Pod) {}),
			owned("ended", func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }),
			owned("other", func(p *corev1.Pod) { p.OwnerReferences = nil }),
		)
		metrics := &podAskers{}
		b.metrics = metrics
		b.run(t, 15*time.Second)
		require.Len(t, metrics.followed, 3, "before the first reading, and with every round")
		for _, pods := range metrics.followed {
			assert.Equal(t, []string{"n/serves", "n/starts"}, pods)
		}
		assert.Equal(t, []int{1, 2}, metrics.read, "they are known before they are asked")
	})
}
