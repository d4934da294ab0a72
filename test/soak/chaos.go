package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/localcluster"
)

// The programs that are killed, beside the managers of the pair.
const (
	apiServer  = "kube-apiserver"
	prometheus = "prometheus"
)

// What was done.
const (
	killed    = "killed"
	cordoned  = "cordoned"
	edited    = "edited"
	misedited = "edited wrongly"
	deleted   = "deleted"
	rivalled  = "rivalled by an HPA"
)

// deed is something that was done to a subject, and until when it lasted.
type deed struct {
	Kind    string    `json:"kind"`
	Subject string    `json:"subject"`
	From    time.Time `json:"from"`
	Until   time.Time `json:"until"`
}

// death is a program that ended by itself.
type death struct {
	Name string    `json:"name"`
	At   time.Time `json:"at"`
	How  string    `json:"how"`
}

// draw is one thing that may be done: what, to whom, and for how long.
type draw struct {
	kind, subject string
	long          time.Duration
}

// draws are all kinds of things, each as often in the list as it is likely.
func (w *world) draw(random *rand.Rand) draw {
	between := func(least, most int) time.Duration {
		return time.Duration(1000*least+random.IntN(1000*(most-least))) * time.Millisecond
	}
	one := func(names ...string) string { return names[random.IntN(len(names))] }
	var variants []string
	for _, m := range models {
		for _, v := range m.variants {
			variants = append(variants, v.name)
		}
	}
	switch random.IntN(12) {
	case 0, 1, 2:
		return draw{killed, one(pair...), between(0, 6)}
	case 3:
		return draw{killed, scheduler, between(1, 6)}
	case 4:
		return draw{killed, prometheus, between(2, 12)}
	case 5:
		// Longer than samples count as anything.
		return draw{killed, prometheus, blind + between(8, 15)}
	case 6:
		return draw{killed, apiServer, between(1, 9)}
	case 7:
		return draw{cordoned, one("h100-0", "h100-1", "h100-2", "l40s-0", "l40s-1", "l40s-2"), between(10, 30)}
	case 8:
		return draw{edited, one(names(rightEdits)...), between(8, 20)}
	case 9:
		return draw{misedited, one(names(wrongEdits)...), between(5, 12)}
	case 10:
		return draw{deleted, one(variants...), between(3, 12)}
	default:
		return draw{rivalled, one(variants...), between(10, 20)}
	}
}

// begin starts the clock, and what goes on beside: whoever dies is started again, and the
// programs are looked at.
func (w *world) begin() {
	w.began = time.Now()
	w.wait.Go(w.supervise)
	w.wait.Go(w.watchMemory)
}

// wreck does one thing after the other, and several at once, for so long, and returns when
// all is as it was.
func (w *world) wreck(ctx context.Context, long time.Duration) error {
	random := rand.New(rand.NewPCG(w.seed, 0)) // #nosec G404: a seed is asked for
	varying, enough := context.WithTimeout(ctx, long)
	defer enough()
	var doing sync.WaitGroup
	for i, l := range w.loads {
		own := rand.New(rand.NewPCG(w.seed, uint64(i)+1)) // #nosec G404, G115: a seed is asked for
		doing.Go(func() { l.vary(varying, own) })
	}
	busy := map[string]bool{}
	var mutex sync.Mutex
	for pause(varying, time.Duration(3+random.IntN(5))*time.Second) {
		d := w.draw(random)
		mutex.Lock()
		free := !busy[d.subject]
		if free {
			busy[d.subject] = true
		}
		mutex.Unlock()
		if !free {
			continue
		}
		doing.Go(func() {
			w.do(ctx, d)
			mutex.Lock()
			delete(busy, d.subject)
			mutex.Unlock()
		})
	}
	doing.Wait()
	return w.broken(ctx)
}

// broken is what kept the soak from going on.
func (w *world) broken(ctx context.Context) error {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return errors.Join(append(slices.Clone(w.problems), ctx.Err())...)
}

// do does one thing and undoes it.
func (w *world) do(ctx context.Context, d draw) {
	do, undo := w.kill(d.subject)
	switch d.kind {
	case cordoned:
		do, undo = w.cordon(d.subject)
	case edited:
		do, undo = w.edit(d.subject, rightEdits[d.subject])
	case misedited:
		do, undo = w.edit(d.subject, wrongEdits[d.subject])
	case deleted:
		do, undo = w.remove(d.subject)
	case rivalled:
		do, undo = w.rival(d.subject)
	}
	if err := w.insist(ctx, do); err != nil {
		w.fail(fmt.Errorf("%s %s: %w", d.subject, d.kind, err))
		return
	}
	done := deed{Kind: d.kind, Subject: d.subject, From: time.Now()}
	w.say("%s: %s for %s", d.subject, d.kind, d.long.Round(time.Second))
	pause(ctx, d.long)
	if err := w.insist(ctx, undo); err != nil {
		w.fail(fmt.Errorf("%s was %s, and is not as before: %w", d.subject, d.kind, err))
		return
	}
	done.Until = time.Now()
	w.mutex.Lock()
	w.deeds = append(w.deeds, done)
	w.mutex.Unlock()
}

// patience is how long something is tried before the soak gives up.
const patience = 2 * time.Minute

// insist tries until it succeeds: the API server may be away.
func (w *world) insist(ctx context.Context, try func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		err := try(ctx)
		if err == nil {
			return nil
		}
		if !pause(ctx, 500*time.Millisecond) {
			return errors.Join(ctx.Err(), err)
		}
	}
}

// kill ends a program as a crash does, and keeps it from being started again until undo.
func (w *world) kill(name string) (do, undo func(context.Context) error) {
	do = func(context.Context) error {
		w.hold(name, 1)
		return w.cluster.Kill(name)
	}
	undo = func(ctx context.Context) error {
		if err := w.revive(ctx, name); err != nil {
			return err
		}
		w.hold(name, -1)
		return nil
	}
	return do, undo
}

func (w *world) hold(name string, by int) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.held[name] += by
}

// revive starts a program that does not run. Only Prometheus and the API server itself
// start without an API server.
func (w *world) revive(ctx context.Context, name string) error {
	if name != apiServer && name != prometheus {
		if _, err := w.typed.Discovery().ServerVersion(); err != nil {
			return err
		}
	}
	if process, ours := w.processes[name]; ours {
		return w.cluster.StartProcess(ctx, process)
	}
	return w.cluster.Restart(ctx, name)
}

// supervise starts again what ended by itself, as a kubelet would.
func (w *world) supervise() {
	for {
		select {
		case <-w.running.Done():
			return
		case err := <-w.cluster.Failed():
			var died *localcluster.DeathError
			if !errors.As(err, &died) {
				w.fail(err)
				continue
			}
			w.mutex.Lock()
			w.deaths = append(w.deaths, death{Name: died.Name, At: time.Now(), How: died.How})
			held := w.held[died.Name] > 0
			w.mutex.Unlock()
			w.say("%s ended by itself", died.Name)
			if held {
				continue // whoever keeps it down starts it again
			}
			w.hold(died.Name, 1)
			w.wait.Go(func() {
				if err := w.insist(w.running, func(ctx context.Context) error { return w.revive(ctx, died.Name) }); err != nil && w.running.Err() == nil {
					w.fail(fmt.Errorf("%s cannot be started again: %w", died.Name, err))
				}
				w.hold(died.Name, -1)
			})
		}
	}
}

func (w *world) cordon(name string) (do, undo func(context.Context) error) {
	set := func(to string) func(context.Context) error {
		return func(ctx context.Context) error {
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
			return w.api.Patch(ctx, node, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"unschedulable":`+to+`}}`)))
		}
	}
	return set("true"), set("null")
}

// The edits of ConfigMaps, by the name of the map: an entry and its text.
var (
	rightEdits = map[string][2]string{
		settings:                        {"GLOBAL_OPT_INTERVAL", "5s"},
		"wva-saturation-scaling-config": {"default", "queueLengthThreshold: 6\n"},
		"service-classes-config":        {"class", "name: class\npriority: 1\ndata:\n- model: alpha\n  slo-ttft: 2000\n  slo-tpot: 200\n"},
	}
	wrongEdits = map[string][2]string{
		settings:                        {"GLOBAL_OPT_INTERVAL", "soon"},
		"wva-saturation-scaling-config": {"default", "kvCacheThreshold: 5\n"},
		"service-classes-config":        {"class", "name: [\n"},
	}
)

func names(edits map[string][2]string) []string {
	var all []string
	for name := range edits {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

// edit writes an entry of a ConfigMap. Undone, the main one has the old value again, and
// another one goes.
func (w *world) edit(name string, entry [2]string) (do, undo func(context.Context) error) {
	object := func(text string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: name}, Data: map[string]string{entry[0]: text}}
	}
	if name == settings {
		write := func(text string) func(context.Context) error {
			return func(ctx context.Context) error { return w.api.Update(ctx, object(text)) }
		}
		return write(entry[1]), write("3s")
	}
	do = func(ctx context.Context) error {
		return ignore(apierrors.IsAlreadyExists, w.api.Create(ctx, object(entry[1])))
	}
	undo = func(ctx context.Context) error { return ignore(apierrors.IsNotFound, w.api.Delete(ctx, object(""))) }
	return do, undo
}

// ignore leaves out the error of something that was done before, by a request whose answer
// was lost.
func ignore(expected func(error) bool, err error) error {
	if expected(err) {
		return nil
	}
	return err
}

// remove deletes a Deployment and creates it anew, with one replica.
func (w *world) remove(name string) (do, undo func(context.Context) error) {
	m, v, _ := modelOf(name)
	do = func(ctx context.Context) error {
		return ignore(apierrors.IsNotFound, w.api.Delete(ctx, m.deployment(v, 1), client.PropagationPolicy(metav1.DeletePropagationBackground)))
	}
	undo = func(ctx context.Context) error {
		return ignore(apierrors.IsAlreadyExists, w.api.Create(ctx, m.deployment(v, 1)))
	}
	return do, undo
}

// rival lets a HorizontalPodAutoscaler scale a Deployment. Nothing serves its metric, so
// that it writes nothing itself.
func (w *world) rival(name string) (do, undo func(context.Context) error) {
	object := func() *autoscalingv2.HorizontalPodAutoscaler {
		return &autoscalingv2.HorizontalPodAutoscaler{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
				ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: name},
				MaxReplicas:    9,
				Metrics: []autoscalingv2.MetricSpec{{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
					Name: corev1.ResourceCPU, Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: new(int32(50))},
				}}},
			},
		}
	}
	do = func(ctx context.Context) error { return ignore(apierrors.IsAlreadyExists, w.api.Create(ctx, object())) }
	undo = func(ctx context.Context) error { return ignore(apierrors.IsNotFound, w.api.Delete(ctx, object())) }
	return do, undo
}
