package controller

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

// slowServer takes a while for each status, and notes how many it was given at once.
type slowServer struct {
	*statuses
	takes time.Duration
	fail  error

	lock        sync.Mutex
	atOnce      map[string]int
	most, total int
	together    bool
}

func newSlowServer(t *testing.T, objects int, takes time.Duration) (*slowServer, []*v1alpha1.VariantAutoscaling) {
	t.Helper()
	s := &slowServer{takes: takes, atOnce: map[string]int{}}
	builder := fake.NewClientBuilder().WithScheme(everything(t)).WithStatusSubresource(&v1alpha1.VariantAutoscaling{})
	builder.WithInterceptorFuncs(interceptor.Funcs{SubResourcePatch: func(
		ctx context.Context, c client.Client, sub string, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption,
	) error {
		s.enter(object.GetName())
		<-time.After(s.takes)
		defer s.leave(object.GetName())
		if s.fail != nil {
			return s.fail
		}
		return c.SubResource(sub).Patch(ctx, object, patch, options...)
	}})
	api := builder.Build()
	s.statuses = newStatuses(api)
	var all []*v1alpha1.VariantAutoscaling
	for i := range objects {
		name := fmt.Sprint("v", i)
		object := &v1alpha1.VariantAutoscaling{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, UID: types.UID(name)}}
		require.NoError(t, api.Create(t.Context(), object))
		all = append(all, object)
	}
	return s, all
}

func (s *slowServer) enter(name string) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.atOnce[name]++
	s.total++
	sum := 0
	for _, n := range s.atOnce {
		sum += n
		s.together = s.together || n > 1
	}
	s.most = max(s.most, sum)
}

func (s *slowServer) leave(name string) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.atOnce[name]--
}

// served is the status that the server holds.
func (s *slowServer) served(t *testing.T, name string) v1alpha1.VariantAutoscalingStatus {
	t.Helper()
	var object v1alpha1.VariantAutoscaling
	require.NoError(t, s.client.Get(t.Context(), client.ObjectKey{Namespace: "n", Name: name}, &object))
	return object.Status
}

func classed(object *v1alpha1.VariantAutoscaling, class string) *statusChange {
	return &statusChange{base: object, status: v1alpha1.VariantAutoscalingStatus{ServiceClass: class}}
}

func allClassed(objects []*v1alpha1.VariantAutoscaling, class string) (changes []*statusChange) {
	for _, object := range objects {
		changes = append(changes, classed(object, class))
	}
	return changes
}

func TestStatusesAreWrittenBesideTheLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, objects := newSlowServer(t, 100, time.Second)
		began := time.Now()
		s.begin(t.Context(), allClassed(objects, "first"))
		assert.False(t, s.done(t.Context()))
		assert.Equal(t, statusPatience, time.Since(began), "the loop goes on")
		<-time.After(time.Hour)
		assert.Equal(t, requests, s.most)
		assert.Len(t, s.collect(), 100)
		assert.Empty(t, s.owed)
		assert.Equal(t, "first", s.served(t, "v99").ServiceClass)
		assert.Empty(t, s.collect(), "once")
	})
}

// The next round writes scales, and no status beside them. What it found not written it asks
// for again, before anything else.
func TestStatusesThatTheNextRoundFindsNotWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, objects := newSlowServer(t, 30, time.Second)
		s.begin(t.Context(), allClassed(objects, "a"))
		<-time.After(500 * time.Millisecond)
		began := time.Now()
		s.end()
		assert.Equal(t, 500*time.Millisecond, time.Since(began), "those that were begun are waited for")
		for name, n := range s.atOnce {
			assert.Zero(t, n, name)
		}
		<-time.After(time.Minute)
		assert.Equal(t, requests, s.total, "what is not begun is left out")
		assert.Len(t, s.collect(), 30)
		assert.Len(t, s.owed, 30-requests)
		assert.Nil(t, s.owed["v0"])
		assert.Equal(t, "a", s.owed["v29"].ServiceClass)

		s.begin(t.Context(), allClassed(objects, "b"))
		<-time.After(500 * time.Millisecond)
		s.end()
		assert.Equal(t, "b", s.served(t, "v29").ServiceClass)
		assert.Equal(t, "b", s.served(t, "v16").ServiceClass)
		assert.Equal(t, "a", s.served(t, "v0").ServiceClass)
		s.collect()
		s.begin(t.Context(), nil)
		assert.True(t, s.done(t.Context()))
		assert.Empty(t, s.owed, "nobody asks for them any more")
	})
}

func TestAScaleDoesNotWaitForAStatusThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := fake.NewClientBuilder().WithScheme(everything(t)).WithInterceptorFuncs(interceptor.Funcs{SubResourcePatch: func(
			ctx context.Context, _ client.Client, _ string, _ client.Object, _ client.Patch, _ ...client.SubResourcePatchOption,
		) error {
			<-ctx.Done()
			return ctx.Err()
		}}).Build()
		s, began := newStatuses(api), time.Now()
		s.begin(t.Context(), []*statusChange{classed(&v1alpha1.VariantAutoscaling{ObjectMeta: metav1.ObjectMeta{UID: "v"}}, "x")})
		synctest.Wait()
		s.end()
		assert.Equal(t, statusPatience, time.Since(began))
		done := s.collect()
		require.Len(t, done, 1)
		require.NoError(t, done[0].err)
		assert.NotNil(t, s.owed["v"])
	})
}

func TestAStatusThatFailsIsAskedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, objects := newSlowServer(t, 1, time.Second)
		s.fail = errors.New("no")
		s.begin(t.Context(), []*statusChange{classed(objects[0], "x")})
		<-time.After(time.Hour)
		done := s.collect()
		require.Len(t, done, 1)
		require.ErrorContains(t, done[0].err, "writing the status of VariantAutoscaling n/v0: no")
		assert.Nil(t, done[0].written)
		assert.NotNil(t, s.owed["v0"])
	})
}

// When the replicas were written stands in the status for good, also where somebody changed
// the object in the moment in which the status was written.
func TestWhenItWasScaledIsNotLostToAConflict(t *testing.T) {
	plan, seen, r, _ := fleet(t, 1)
	a := &actor{scaler: &scales{fail: func(string) error { return nil }}, overlay: r.overlay}
	v := seen.variants[plan.Models[0].Variants[0].Key]
	changed := v.object.DeepCopy()
	changed.Labels = map[string]string{"some": "body"}
	require.NoError(t, r.statuses.client.Update(t.Context(), changed))
	require.NoError(t, r.report(t.Context(), plan, seen, a.act(t.Context(), plan, seen), nil))
	require.Nil(t, changed.Status.Actuation, "it was changed")

	v.object = changed
	plan.Each(func(p *decision.VariantPlan) { p.Current = 3 })
	plan.Time = plan.Time.Add(10 * time.Second)
	require.NoError(t, r.report(t.Context(), plan, seen, a.act(t.Context(), plan, seen), nil))
	require.NoError(t, r.statuses.client.Get(t.Context(), client.ObjectKeyFromObject(changed), changed))
	require.NotNil(t, changed.Status.Actuation)
	require.NotNil(t, changed.Status.Actuation.LastScaleTime)
	assert.True(t, changed.Status.Actuation.LastScaleTime.Time.Equal(noon))
}

// The status of an object says what was decided about it as it was seen: not about another
// one of its name, nor about one that somebody has changed since.
func TestAStatusIsOfTheObjectThatWasSeen(t *testing.T) {
	for name, change := range map[string]func(*testing.T, client.Client, *v1alpha1.VariantAutoscaling){
		"made anew": func(t *testing.T, c client.Client, object *v1alpha1.VariantAutoscaling) {
			t.Helper()
			require.NoError(t, c.Delete(t.Context(), object.DeepCopy()))
			other := &v1alpha1.VariantAutoscaling{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "v0", UID: "another"}}
			require.NoError(t, c.Create(t.Context(), other))
			// An API server gives no version twice; the fake one begins anew.
			require.NoError(t, c.Update(t.Context(), other))
		},
		"given to another controller": func(t *testing.T, c client.Client, object *v1alpha1.VariantAutoscaling) {
			t.Helper()
			other := object.DeepCopy()
			other.Labels = map[string]string{v1alpha1.LabelControllerInstance: "another"}
			require.NoError(t, c.Update(t.Context(), other))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, objects := newSlowServer(t, 1, time.Second)
				change(t, s.client, objects[0])
				s.begin(t.Context(), []*statusChange{classed(objects[0], "x")})
				<-time.After(time.Hour)
				assert.Empty(t, s.served(t, "v0").ServiceClass)
				done := s.collect()
				require.Len(t, done, 1)
				require.NoError(t, done[0].err, "the next round sees it as it is")
				assert.Nil(t, done[0].written)
			})
		})
	}
}

// A round over many variants does not wait for their statuses, and the next one begins
// with what they will be.
func TestARoundDoesNotWaitForManyStatuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plan, seen, r, recorder := fleet(t, 100)
		slow, _ := newSlowServer(t, 100, time.Second)
		r.statuses = slow.statuses
		a := &actor{scaler: &scales{fail: func(string) error { return nil }}, overlay: r.overlay}
		began := time.Now()
		require.NoError(t, r.report(t.Context(), plan, seen, a.act(t.Context(), plan, seen), nil))
		assert.Equal(t, statusPatience, time.Since(began))
		drained(recorder)

		// What was found is the same: nothing is written twice, and what is owed does not lose
		// when the scale was written.
		plan.Each(func(p *decision.VariantPlan) { p.Current = 3 })
		plan.Time = plan.Time.Add(time.Minute)
		require.NoError(t, r.report(t.Context(), plan, seen, a.act(t.Context(), plan, seen), nil))
		<-time.After(time.Hour)
		assert.Equal(t, 100, slow.total, "one status each")
		require.NoError(t, errors.Join(r.collect()...))
		assert.Len(t, r.overlay.variants, 100)
		last := slow.served(t, "v99")
		require.NotNil(t, last.Actuation.LastScaleTime)
		assert.True(t, last.Actuation.LastScaleTime.Time.Equal(noon), "when it was written, and not when that was shown")
	})
}

// Whoever has many objects does not keep others waiting, whether theirs are owed or not.
func TestStatusesAreWrittenInTurns(t *testing.T) {
	var order []string
	var changes []*statusChange
	server := newStatuses(nil)
	add := func(namespace string, many int, owed bool) {
		for i := range many {
			object := &v1alpha1.VariantAutoscaling{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprint(namespace, i), UID: types.UID(fmt.Sprint(namespace, i))}}
			changes = append(changes, &statusChange{base: object})
			if owed {
				server.owed[object.UID] = &object.Status
			}
		}
	}
	add("a", 2, false)
	add("a-owed", 3, true)
	add("z", 1, false)
	// None is written: the context has ended.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	server.begin(ctx, changes)
	for _, c := range server.changes {
		order = append(order, c.base.Name)
	}
	server.end()
	assert.Equal(t, []string{"a-owed0", "a0", "z0", "a-owed1", "a1", "a-owed2"}, order)
}
