package main

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// While an upgrade rolls on, managers of the revision before may lead by the lease of its
// name: nobody leads beside them.
func TestManagersOfTheRevisionBeforeAreWaitedFor(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	lease := func(holder string, renewed time.Duration) *coordinationv1.Lease {
		return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "id"}, Spec: coordinationv1.LeaseSpec{
			HolderIdentity: &holder, LeaseDurationSeconds: new(int32(60)), RenewTime: &metav1.MicroTime{Time: now.Add(-renewed)},
		}}
	}
	set := func(name, deployment string) *appsv1.ReplicaSet {
		return &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, UID: types.UID(name), OwnerReferences: []metav1.OwnerReference{
			{Kind: "Deployment", Name: deployment, UID: types.UID(deployment), Controller: new(true)},
		}}}
	}
	pod := func(name, set string, change ...func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "n", Name: name, Labels: map[string]string{"app": "wva", "pod-template-hash": set},
				OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: set, UID: types.UID(set), Controller: new(true)}},
			},
			Status: corev1.PodStatus{Phase: corev1.PodRunning},
		}
		for _, c := range change {
			c(p)
		}
		return p
	}
	ends := func(p *corev1.Pod) {
		p.DeletionTimestamp, p.Finalizers = &metav1.Time{Time: now}, []string{"kept/there"}
	}
	failed := func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }
	me, after, before, others := pod("me", "after"), set("after", "blue"), set("before", "blue"), set("others", "green")
	for name, c := range map[string]struct {
		objects []runtime.Object
		want    string
	}{
		"no lease of an earlier version":          {[]runtime.Object{me, after, before, pod("old", "before")}, ""},
		"a manager of the revision before":        {[]runtime.Object{lease("", 0), me, after, before, pod("old", "before")}, "old"},
		"it stands by, and may lead next":         {[]runtime.Object{lease("old_1", 0), me, after, before, pod("old", "before", ends), pod("second", "before")}, "old"},
		"it ends and leads still":                 {[]runtime.Object{lease("old_1", time.Second), me, after, before, pod("old", "before", ends)}, "old"},
		"it ends and another one holds the lease": {[]runtime.Object{lease("older_1", time.Second), me, after, before, pod("old", "before", ends)}, ""},
		"it ends and its lease has run out":       {[]runtime.Object{lease("old_1", time.Minute), me, after, before, pod("old", "before", ends)}, ""},
		"it has failed":                           {[]runtime.Object{lease("old_1", time.Second), me, after, before, pod("old", "before", failed)}, ""},
		"only those of this revision":             {[]runtime.Object{lease("second_1", time.Second), me, after, pod("second", "after")}, ""},
		"a manager of another Deployment leads":   {[]runtime.Object{lease("green_1", time.Second), me, after, others, pod("green", "others")}, ""},
		"outside of a cluster":                    {[]runtime.Object{lease("old_1", time.Second), before, pod("old", "before")}, ""},
		"a pod without a Deployment":              {[]runtime.Object{lease("old_1", time.Second), me, before, pod("old", "before")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := formerManagers{client: fake.NewClientset(c.objects...), namespace: "n", lease: "id", pod: "me", now: func() time.Time { return now }}
			got, err := f.running(t.Context())
			require.NoError(t, err)
			assert.Equal(t, c.want, got)
		})
	}
}

// writes is a lock that counts how often it is written.
type writes struct {
	resourcelock.Interface
	count int
}

func (w *writes) Create(context.Context, resourcelock.LeaderElectionRecord) error {
	w.count++
	return nil
}

func (w *writes) Update(context.Context, resourcelock.LeaderElectionRecord) error {
	w.count++
	return nil
}

func TestALeaseIsTakenWhenNobodyIsWaitedForAndThenKept(t *testing.T) {
	inner := &writes{}
	who, problem := "old", error(nil)
	lock := &waitingLock{Interface: inner, waitsFor: func(context.Context) (string, error) { return who, problem }}
	record := resourcelock.LeaderElectionRecord{}
	require.ErrorContains(t, lock.Create(t.Context(), record), "old may lead by a lease of an earlier version")
	require.ErrorContains(t, lock.Update(t.Context(), record), "old may lead")
	who, problem = "", errors.New("no answer")
	require.ErrorIs(t, lock.Update(t.Context(), record), problem, "nobody knows whether there is one")
	assert.Zero(t, inner.count)
	problem = nil
	require.NoError(t, lock.Create(t.Context(), record))
	who = "old"
	require.NoError(t, lock.Update(t.Context(), record), "who leads goes on")
	assert.Equal(t, 2, inner.count)
}
