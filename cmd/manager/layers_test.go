package main

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"llmd.ai/workload-variant-autoscaler/pkg/controller"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

type told struct {
	pods   map[types.NamespacedName]decision.Replica
	models map[decision.ModelKey]decision.Model
	err    error
}

func (t told) Read(context.Context, time.Time, time.Duration, time.Duration) (map[types.NamespacedName]decision.Replica, map[decision.ModelKey]decision.Model, error) {
	return t.pods, t.models, t.err
}

var llama, anonymous = decision.ModelKey{Namespace: "chat", ID: "llama"}, decision.ModelKey{ID: "llama"}

func known(v float64) decision.Sample {
	return decision.Sample{Value: v, Time: time.Unix(1, 0), Present: true}
}

func after(s decision.Sample, d time.Duration) decision.Sample {
	s.Time = s.Time.Add(d)
	return s
}

func model(key decision.ModelKey, queue, arrival, recent decision.Sample) decision.Model {
	m := decision.Model{Namespace: key.Namespace, ID: key.ID, Queue: queue, Arrival: arrival, Recent: recent}
	if recent.Present {
		m.RecentSpan = time.Duration(recent.Value) * time.Second
	}
	return m
}

func of(all ...decision.Model) map[decision.ModelKey]decision.Model {
	models := map[decision.ModelKey]decision.Model{}
	for _, m := range all {
		models[decision.ModelKey{Namespace: m.Namespace, ID: m.ID}] = m
	}
	return models
}

func TestWhatGatewaysSayThemselvesCounts(t *testing.T) {
	var unknown decision.Sample
	elsewhere := decision.ModelKey{Namespace: "batch", ID: "llama"}
	for name, c := range map[string]struct {
		own, others, want map[decision.ModelKey]decision.Model
	}{
		"nobody says anything":       {nil, nil, of()},
		"only Prometheus knows":      {nil, of(model(llama, known(1), known(2), known(3))), of(model(llama, known(1), known(2), known(3)))},
		"Prometheus asks no gateway": {of(model(llama, known(1), known(2), known(3))), nil, of(model(llama, known(1), known(2), known(3)))},
		"what is unknown stays below": {
			of(model(llama, known(9), unknown, unknown)), of(model(llama, known(1), known(2), known(3))),
			of(model(llama, known(9), known(2), known(3))),
		},
		"a rate comes with its span": {
			of(model(llama, unknown, known(8), known(7))), of(model(llama, known(1), known(2), known(3))),
			of(model(llama, known(1), known(8), known(7))),
		},
		"a gateway that no longer answers gives way": {
			of(model(llama, known(9), known(8), known(7))), of(model(llama, after(known(1), 31*time.Second), after(known(2), 30*time.Second), after(known(3), 31*time.Second))),
			of(model(llama, after(known(1), 31*time.Second), known(8), after(known(3), 31*time.Second))),
		},
		"each counts under the name that it is shown under": {
			of(model(llama, known(9), unknown, unknown), model(anonymous, unknown, known(5), unknown)), of(model(anonymous, known(1), known(2), unknown)),
			of(model(llama, known(9), unknown, unknown), model(anonymous, known(1), known(5), unknown)),
		},
		"two models of one name are not mixed": {
			of(model(llama, known(9), unknown, unknown)), of(model(elsewhere, known(1), known(2), unknown)),
			of(model(llama, known(9), unknown, unknown), model(elsewhere, known(1), known(2), unknown)),
		},
	} {
		t.Run(name, func(t *testing.T) {
			pods := map[types.NamespacedName]decision.Replica{{Name: "a"}: {Name: "a"}}
			metrics := layered{told{pods: pods, models: c.others}, told{models: c.own, pods: map[types.NamespacedName]decision.Replica{{Name: "b"}: {}}}}
			gotPods, got, err := metrics.Read(t.Context(), time.Unix(2, 0), time.Minute, time.Hour)
			require.NoError(t, err)
			assert.Equal(t, pods, gotPods)
			assert.Equal(t, c.want, got)
		})
	}
}

func TestBothErrorsAreSaid(t *testing.T) {
	first, second := errors.New("first"), errors.New("second")
	_, models, err := layered{told{err: first, models: of(model(llama, known(1), known(1), known(1)))}, told{err: second}}.Read(t.Context(), time.Unix(2, 0), time.Minute, time.Hour)
	require.ErrorIs(t, err, first)
	require.ErrorIs(t, err, second)
	assert.Len(t, models, 1, "what is there is good")
}

func TestPodsAreNotFollowedForTheGatewaysAlone(t *testing.T) {
	var metrics controller.Metrics = layered{told{}, told{}}
	_, follows := metrics.(controller.Follower)
	assert.False(t, follows)
}
