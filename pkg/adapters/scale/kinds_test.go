package scale

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// apps is what an API server says of the group apps.
func apps() *metav1.APIResourceList {
	return &metav1.APIResourceList{GroupVersion: "apps/v1", APIResources: []metav1.APIResource{
		{Name: "deployments", Kind: "Deployment", Namespaced: true},
		{Name: "deployments/scale", Kind: "Scale", Group: "autoscaling", Version: "v1", Namespaced: true},
		{Name: "controllerrevisions", Kind: "ControllerRevision", Namespaced: true},
	}}
}

func unicorns(scale bool) *metav1.APIResourceList {
	list := &metav1.APIResourceList{GroupVersion: "example.com/v1", APIResources: []metav1.APIResource{{Name: "unicorns", Kind: "Unicorn", Namespaced: true}}}
	if scale {
		list.APIResources = append(list.APIResources, metav1.APIResource{Name: "unicorns/scale", Kind: "Scale", Group: "autoscaling", Version: "v1"})
	}
	return list
}

var unicorn = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Unicorn"}

// server of kinds, and a clock that stands still.
type apiServer struct {
	*kinds
	asked atomic.Int32
	lists []*metav1.APIResourceList
	err   error
	clock time.Time
}

func serving(lists ...*metav1.APIResourceList) *apiServer {
	s := &apiServer{lists: lists, clock: time.Unix(0, 0)}
	s.kinds = &kinds{now: func() time.Time { return s.clock }, discover: func() ([]*metav1.APIResourceList, error) {
		s.asked.Add(1)
		return s.lists, s.err
	}}
	return s
}

func kindsOf(t *testing.T) *kinds {
	t.Helper()
	return serving(apps()).kinds
}

// A thousand objects that name kinds which do not exist cost one look, not a thousand in every round.
func TestKindsThatNobodyServesAreOneLook(t *testing.T) {
	t.Parallel()
	s := serving(apps())
	for range 20 { // rounds of a second
		var group sync.WaitGroup
		for i := range 1000 {
			group.Go(func() {
				_, err := s.find(t.Context(), schema.GroupVersionKind{Group: fmt.Sprintf("g%d.example.com", i), Version: "v1", Kind: "Unicorn"})
				assert.True(t, apimeta.IsNoMatchError(err), "%v", err)
			})
		}
		group.Wait()
		s.clock = s.clock.Add(time.Second)
	}
	assert.EqualValues(t, 2, s.asked.Load(), "one look in ten seconds")
	found, err := s.find(t.Context(), schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"})
	require.NoError(t, err)
	assert.Equal(t, schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, found.resource)
	assert.Equal(t, autoscalingv1.SchemeGroupVersion.WithKind("Scale"), found.scale)
	assert.True(t, found.namespaced)
}

func TestAKindThatComesAndGoes(t *testing.T) {
	t.Parallel()
	s := serving(apps())
	_, err := s.find(t.Context(), unicorn)
	require.True(t, apimeta.IsNoMatchError(err))

	s.lists = append(s.lists, unicorns(false))
	_, err = s.find(t.Context(), unicorn)
	require.True(t, apimeta.IsNoMatchError(err), "a look was made just now")
	s.clock = s.clock.Add(lookAgain)
	found, err := s.find(t.Context(), unicorn)
	require.NoError(t, err)
	assert.True(t, found.scale.Empty())

	s.lists[1], s.clock = unicorns(true), s.clock.Add(lookAgain)
	found, err = s.anew(t.Context(), unicorn)
	require.NoError(t, err)
	assert.False(t, found.scale.Empty(), "its CRD was given a scale subresource")

	s.lists, s.clock = s.lists[:1], s.clock.Add(lookAgain)
	_, err = s.anew(t.Context(), unicorn)
	assert.True(t, apimeta.IsNoMatchError(err))
}

// A group whose server is away is not known; that is no word against its kinds.
func TestAGroupThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	s := serving(apps(), unicorns(true))
	_, err := s.find(t.Context(), unicorn)
	require.NoError(t, err)
	s.lists = s.lists[:1]
	s.err = &discovery.ErrGroupDiscoveryFailed{Groups: map[schema.GroupVersion]error{unicorn.GroupVersion(): errors.New("away"), {Group: "other", Version: "v1"}: errors.New("away too")}}
	s.clock = s.clock.Add(lookAgain)
	_, err = s.anew(t.Context(), unicorn)
	require.NoError(t, err, "it is as it was")
	_, err = s.find(t.Context(), schema.GroupVersionKind{Group: "other", Version: "v1", Kind: "Horse"})
	require.ErrorContains(t, err, "away too")
	assert.False(t, apimeta.IsNoMatchError(err))
	s.err, s.clock = errors.New("refused"), s.clock.Add(lookAgain)
	_, err = s.anew(t.Context(), unicorn)
	require.ErrorContains(t, err, "refused")
	found, err := s.find(t.Context(), unicorn)
	require.NoError(t, err, "what was found stays")
	assert.Equal(t, "unicorns", found.resource.Resource)
}

// An API server that hangs holds up nobody longer than they are ready to wait.
func TestAnAPIServerThatHangs(t *testing.T) {
	t.Parallel()
	s := serving(apps())
	answer := make(chan struct{})
	s.discover = func() ([]*metav1.APIResourceList, error) {
		s.asked.Add(1)
		<-answer
		return s.lists, nil
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("the round is over"))
	for range 3 {
		_, err := s.find(ctx, unicorn)
		require.ErrorContains(t, err, "the round is over")
	}
	close(answer)
	_, err := s.find(t.Context(), unicorn)
	assert.True(t, apimeta.IsNoMatchError(err))
	assert.EqualValues(t, 1, s.asked.Load(), "one look is under way for all")
}
