package main

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/localcluster"
)

// sample is what one life of a program takes at an instant.
type sample struct {
	Program string `json:"program"`
	// Started tells the lives of a program apart.
	Started    float64   `json:"started"`
	At         time.Time `json:"at"`
	Goroutines float64   `json:"goroutines"`
	// Memory is what is resident, in bytes.
	Memory float64 `json:"memory"`
}

// readiness is how many replicas of each Deployment served at an instant.
type readiness struct {
	At    time.Time
	Ready map[string]int32
}

// sampleInterval is the time between two looks at a program.
const sampleInterval = 3 * time.Second

// watchMemory looks at the managers and the scheduler until everything ends. One that is
// down has no sample.
func (w *world) watchMemory() {
	for pause(w.running, sampleInterval) {
		for name, url := range w.metrics {
			w.take(name, url)
		}
		w.take(scheduler, w.cluster.VariantSchedulerURL()+"/metrics")
		w.takeReady()
	}
}

// takeReady notes what serves, unless the API server is away.
func (w *world) takeReady() {
	ctx, cancel := context.WithTimeout(w.running, sampleInterval)
	defer cancel()
	var deployments appsv1.DeploymentList
	if err := w.api.List(ctx, &deployments, client.InNamespace(namespace)); err != nil {
		return
	}
	now := readiness{At: time.Now(), Ready: map[string]int32{}}
	for i := range deployments.Items {
		now.Ready[deployments.Items[i].Name] = deployments.Items[i].Status.ReadyReplicas
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.ready = append(w.ready, now)
}

func (w *world) take(name, url string) {
	ctx, cancel := context.WithTimeout(w.running, sampleInterval)
	defer cancel()
	metrics, err := w.cluster.Metrics(ctx, url)
	if err != nil {
		return // it is down, or was killed while it answered
	}
	s := sample{
		Program: name, Started: localcluster.Total(metrics, "process_start_time_seconds"), At: time.Now(),
		Goroutines: localcluster.Total(metrics, "go_goroutines"), Memory: localcluster.Total(metrics, "process_resident_memory_bytes"),
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.samples = append(w.samples, s)
}

// settle waits until every model serves.
func (w *world) settle(ctx context.Context) error {
	for _, m := range models {
		name := m.variants[0].name
		err := w.insist(ctx, func(ctx context.Context) error {
			var d appsv1.Deployment
			if err := w.api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &d); err != nil {
				return err
			}
			if d.Status.ReadyReplicas == 0 {
				return fmt.Errorf("deployment %s has no ready replica", name)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// rest lets a constant load be until the soak ends. A queue of before is load too: the calm
// begins when it is served.
func (w *world) rest(ctx context.Context) error {
	swept, err := w.sweep(ctx)
	if err != nil {
		return err
	}
	if swept > 0 {
		w.say("%d pods of deleted Deployments were left, and are deleted", swept)
	}
	for _, l := range w.loads {
		l.set(l.model.most * 0.6)
	}
	w.awaitQueues(ctx)
	w.say("calm for %s", calm)
	pause(ctx, calm)
	return w.broken(ctx)
}

// awaitQueues waits until no replica has requests in its queue, and notes those models of
// which some have for too long.
func (w *world) awaitQueues(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, drained)
	defer cancel()
	for {
		w.queued = nil
		for _, m := range models {
			if waiting := w.router.Busiest(m.id) - batchLimit; waiting > shortQueue {
				w.queued = append(w.queued, fmt.Sprintf("%d requests wait in one replica of %s", waiting, m.id))
			}
		}
		if len(w.queued) == 0 || !pause(ctx, time.Second) {
			return
		}
	}
}

// seen is all that the judge is told.
type seen struct {
	Seed  uint64
	Began time.Time
	Ended time.Time
	// Requests are those of the audit log, and Owners the managers by the name of their token.
	Requests []request
	Owners   map[string]string
	Deeds    []deed
	Deaths   []death
	Samples  []sample
	Ready    []readiness
	Loads    []asked
	// Queued are the queues that were not served in time, when nothing was killed any more.
	Queued []string
}

// asked is what was asked of a model, and its variants at the end.
type asked struct {
	Model        model
	Steps        []rate
	Sent, Failed int
	Ends         []end
}

// end is how a variant stands at the end.
type end struct {
	Variant string `json:"variant"`
	// Asked is what its Deployment asks for.
	Asked int32 `json:"asked"`
	Ready int32 `json:"ready"`
	// State is the condition Ready of its object: "True", or a reason and a message.
	State string `json:"state"`
	// Says is the message of that condition: what the manager last decided.
	Says string `json:"says"`
}

// seen collects everything.
func (w *world) seen(ctx context.Context) (*seen, error) {
	s := &seen{Seed: w.seed, Began: w.began, Ended: time.Now(), Owners: w.owners, Queued: w.queued}
	for _, l := range w.loads {
		a := asked{Model: l.model}
		for _, v := range l.model.variants {
			e, err := w.end(ctx, v.name)
			if err != nil {
				return nil, err
			}
			a.Ends = append(a.Ends, e)
		}
		l.mutex.Lock()
		a.Steps, a.Sent, a.Failed = l.steps, l.sent, l.failed
		l.mutex.Unlock()
		s.Loads = append(s.Loads, a)
	}
	requests, err := w.cluster.Requests()
	if err != nil {
		return nil, err
	}
	s.Requests = requests
	w.mutex.Lock()
	defer w.mutex.Unlock()
	s.Deeds, s.Deaths, s.Samples, s.Ready = w.deeds, w.deaths, w.samples, w.ready
	return s, nil
}

func (w *world) end(ctx context.Context, name string) (end, error) {
	var d appsv1.Deployment
	var v v1alpha1.VariantAutoscaling
	key := client.ObjectKey{Namespace: namespace, Name: name}
	if err := w.api.Get(ctx, key, &d); err != nil {
		return end{}, fmt.Errorf("read the end: %w", err)
	}
	if err := w.api.Get(ctx, key, &v); err != nil {
		return end{}, fmt.Errorf("read the end: %w", err)
	}
	e := end{Variant: name, Asked: *d.Spec.Replicas, Ready: d.Status.ReadyReplicas, State: "unknown"}
	if c := apimeta.FindStatusCondition(v.Status.Conditions, v1alpha1.ConditionReady); c != nil {
		e.Says = c.Message
		if e.State = string(c.Status); e.State != "True" {
			e.State = c.Reason + ": " + c.Message
		}
	}
	return e, nil
}
