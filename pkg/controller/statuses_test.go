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
		s.begin(object.GetName())
		<-time.After(s.takes)
		defer s.end(object.GetName())
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

func (s *slowServer) begin(name string) {
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

func (s *slowServer) end(name string) {
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

func TestStatusesAreWrittenBesideTheLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, objects := newSlowServer(t, 100, time.Second)
		var changes []*statusChange
		for _, object := range objects {
			changes = append(changes, classed(object, "first"))
		}
		began := time.Now()
		s.ask(t.Context(), changes)
		s.wait(t.Context(), 1500*time.Millisecond)
		assert.Equal(t, 1500*time.Millisecond, time.Since(began), "the loop goes on")
		done, left := s.collect()
		assert.Len(t, done, requests)
		assert.Equal(t, 100-requests, left)
		assert.Equal(t, "first", s.asked("v99").ServiceClass)
		assert.Nil(t, s.asked("v0"), "it is written")
		s.wait(t.Context(), time.Hour)
		assert.Equal(t, 7*time.Second, time.Since(began), "a hundred by sixteens")
		assert.Equal(t, requests, s.most)
		done, left = s.collect()
		assert.Len(t, done, 100-requests)
		assert.Zero(t, left)
		assert.Equal(t, "first", s.served(t, "v99").ServiceClass)
	})
}

func TestOnlyTheNewestStatusOfAnObjectIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, objects := newSlowServer(t, 1, time.Second)
		for _, class := range []string{"a", "b", "c", "d"} {
			s.ask(t.Context(), []*statusChange{classed(objects[0], class)})
			assert.Equal(t, class, s.asked("v0").ServiceClass)
			synctest.Wait()
		}
		s.wait(t.Context(), time.Hour)
		assert.Equal(t, 2, s.total, "the first, and the newest of those that came meanwhile")
		assert.False(t, s.together)
		assert.Equal(t, "d", s.served(t, "v0").ServiceClass)

		// Back to what stood at first, in the eyes of a loop that has not collected yet.
		s.ask(t.Context(), []*statusChange{{base: objects[0]}})
		s.wait(t.Context(), time.Hour)
		assert.Empty(t, s.served(t, "v0").ServiceClass)
	})
}

func TestStatusesWaitWhileScalesAreWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, objects := newSlowServer(t, 40, time.Second)
		var changes []*statusChange
		for _, object := range objects {
			changes = append(changes, classed(object, "x"))
		}
		s.ask(t.Context(), changes)
		synctest.Wait()
		began := time.Now()
		s.pause(t.Context())
		assert.Equal(t, time.Second, time.Since(began), "those that were begun are waited for")
		<-time.After(time.Minute)
		assert.Equal(t, requests, s.total)
		s.resume(t.Context())
		s.wait(t.Context(), time.Hour)
		assert.Equal(t, 40, s.total)
	})
}

func TestAStatusThatFailsIsAskedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, objects := newSlowServer(t, 1, time.Second)
		s.fail = errors.New("no")
		s.ask(t.Context(), []*statusChange{classed(objects[0], "x")})
		s.wait(t.Context(), time.Hour)
		done, left := s.collect()
		require.Len(t, done, 1)
		require.ErrorContains(t, done[0].err, "writing the status of VariantAutoscaling n/v0: no")
		assert.Nil(t, done[0].written)
		assert.Zero(t, left)
		assert.Nil(t, s.asked("v0"))
	})
}

// A status that is written between two looks of the loop is one that stands: it is not
// written again from what stood before it.
func TestAStatusThatNobodyCollectedYetStands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plan, seen, r, _ := fleet(t, 1)
		slow, _ := newSlowServer(t, 1, time.Second)
		r.statuses = slow.statuses
		v := seen.variants[plan.Models[0].Variants[0].Key]
		r.statuses.ask(t.Context(), []*statusChange{classed(v.object, "x")})
		for range 2 {
			_, stands := r.standing(v.object)
			assert.Equal(t, "x", stands.ServiceClass)
			r.statuses.wait(t.Context(), time.Hour)
		}
		slow.fail = errors.New("no")
		r.statuses.ask(t.Context(), []*statusChange{classed(v.object, "y")})
		r.statuses.wait(t.Context(), time.Hour)
		_, stands := r.standing(v.object)
		assert.Equal(t, "x", stands.ServiceClass, "what failed does not")
	})
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
				s.ask(t.Context(), []*statusChange{classed(objects[0], "x")})
				s.wait(t.Context(), time.Hour)
				assert.Empty(t, s.served(t, "v0").ServiceClass)
				done, left := s.collect()
				require.Len(t, done, 1)
				require.NoError(t, done[0].err, "the next round sees it as it is")
				assert.Nil(t, done[0].written)
				assert.Zero(t, left)
			})
		})
	}
}

func TestNothingIsWrittenAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, objects := newSlowServer(t, 40, time.Second)
		var changes []*statusChange
		for _, object := range objects {
			changes = append(changes, classed(object, "x"))
		}
		s.ask(t.Context(), changes)
		synctest.Wait()
		s.pause(t.Context())
		s.ask(t.Context(), []*statusChange{classed(objects[0], "y")})
		synctest.Wait()
		assert.Equal(t, requests, s.total, "what is not begun is left out")
		for name, n := range s.atOnce {
			assert.Zero(t, n, name)
		}
	})
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
		require.NoError(t, r.report(t.Context(), plan, seen, a.act(t.Context(), plan, seen)))
		assert.Equal(t, statusPatience, time.Since(began))
		drained(recorder)

		// What was found is the same: nothing new is asked for, and no time is lost.
		plan.Each(func(p *decision.VariantPlan) { p.Current = 3 })
		plan.Time = plan.Time.Add(time.Minute)
		require.NoError(t, r.report(t.Context(), plan, seen, a.act(t.Context(), plan, seen)))
		r.statuses.wait(t.Context(), time.Hour)
		assert.Equal(t, 100, slow.total, "one status each")
		_, errs := r.collect()
		require.NoError(t, errors.Join(errs...))
		assert.Len(t, r.overlay.variants, 100)
		last := slow.served(t, "v99")
		require.NotNil(t, last.Actuation.LastScaleTime)
		assert.True(t, last.Actuation.LastScaleTime.Time.Equal(noon), "when it was written, and not when that was shown")
	})
}
