package controller

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/report/sentence"
)

// ownKind is an API server with targets of a kind that no cache holds.
type ownKind struct {
	Scaler
	takes time.Duration
	err   error
}

func (k *ownKind) Read(ctx context.Context, namespace string, ref autoscalingv1.CrossVersionObjectReference) (*autoscalingv1.Scale, error) {
	select {
	case <-time.After(k.takes):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if k.err != nil {
		return nil, k.err
	}
	return &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: ref.Name, UID: types.UID(ref.Name), ResourceVersion: "1"}}, nil
}

func finderOf(t *testing.T, k *ownKind) *targetFinder {
	t.Helper()
	builder := fake.NewClientBuilder().WithScheme(everything(t))
	require.NoError(t, addIndexes(t.Context(), fieldIndexer{builder}, Access{}))
	return &targetFinder{reader: builder.Build(), scaler: k, overlay: newOverlay()}
}

func onKind(name, target string) *variant {
	object := &v1alpha1.VariantAutoscaling{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, UID: types.UID(name)}}
	object.Spec.ScaleTargetRef = v1alpha1.ScaleTargetReference{APIVersion: "example.com/v1", Kind: "Server", Name: target}
	return &variant{object: object, key: decision.Key{Namespace: "n", Name: name}}
}

// What may pass is no missing permission, and nothing that was wanted is forgotten for it.
func TestATargetThatCannotBeReadForAMoment(t *testing.T) {
	k := &ownKind{err: apierrors.NewTooManyRequests("slow down", 1)}
	f := finderOf(t, k)
	find := func(target string) *variant {
		v := onKind("v", target)
		v.object.Status.DesiredOptimizedAlloc = &v1alpha1.DesiredAlloc{NumReplicas: ptr.To[int32](3)}
		require.NoError(t, f.find(t.Context(), []*variant{v}))
		return v
	}
	first := find("server")
	require.Nil(t, first.target.scale)
	plan := &decision.Plan{Models: []decision.ModelPlan{{Variants: []decision.VariantPlan{*unsettled(decision.ReasonTargetForbidden, decision.ReasonTargetForbidden)}}}}
	annotate(plan, &observation{variants: map[decision.Key]*variant{plan.Models[0].Variants[0].Key: first}})
	p := &plan.Models[0].Variants[0]
	assert.False(t, p.Has(decision.ReasonTargetForbidden), "nobody needs to grant anything")
	assert.Equal(t, decision.Reason(v1alpha1.ReasonOptimizationFailed), p.Reason)
	assert.Equal(t, "Server server could not be read yet, so its replicas are held: slow down", sentence.Of(p.Message))
	assert.Equal(t, 3, p.Shown(), "the metric shows what was wanted")
	assert.False(t, changes(p, first, decision.DefaultVariantPolicy()), "nothing is written")

	k.err = nil
	require.NotNil(t, find("server").target.scale)
	k.err = context.DeadlineExceeded
	assert.Equal(t, "server", find("server").target.scale.Name, "what was read last")
	assert.Nil(t, find("other").target.scale, "that was another target")
	k.err = apierrors.NewForbidden(schema.GroupResource{Resource: "servers"}, "server", nil)
	assert.Equal(t, decision.ReasonTargetForbidden, find("server").target.fact.Reason)
}

// Where the API server is too slow for all targets, each has its turn.
func TestTargetsThatAreTooManyToReadAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := finderOf(t, &ownKind{takes: 300 * time.Millisecond})
		var unread []string
		// Of the first look some are left out, and some were under way when its time ended.
		for range 3 {
			var all []*variant
			for i := range 300 {
				all = append(all, onKind(fmt.Sprintf("v%03d", i), fmt.Sprint("s", i)))
			}
			require.NoError(t, f.find(t.Context(), all))
			unread = nil
			for _, v := range all {
				if v.target.scale == nil {
					unread = append(unread, v.key.Name)
				}
			}
		}
		assert.Empty(t, unread)
	})
}

// Whoever has a thousand objects delays others by one read, not by a thousand.
func TestLiveReadsAreSharedBetweenNamespaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := finderOf(t, &ownKind{takes: 100 * time.Millisecond})
		var variants []*variant
		for i := range 2000 {
			v := onKind(fmt.Sprint("many-", i), fmt.Sprint("many-", i))
			v.key.Namespace = "greedy"
			variants = append(variants, v)
		}
		for i := range 3 {
			variants = append(variants, onKind(fmt.Sprint("few-", i), fmt.Sprint("few-", i)))
		}
		few := variants[2000:]
		for range 3 {
			f.findLive(t.Context(), slices.Clone(variants))
			for _, v := range few {
				assert.NotNil(t, v.target.scale, "%s is read in every round", v.key.Name)
				v.target.scale = nil
			}
		}
	})
}
