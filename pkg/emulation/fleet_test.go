package emulation_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"llmd.ai/workload-variant-autoscaler/pkg/emulation"
)

// directory remembers who may be sent requests.
type directory struct {
	mu       sync.Mutex
	replicas map[string]emulation.Replica
}

func (d *directory) Add(r emulation.Replica) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.replicas[r.Name] = r
}

func (d *directory) Remove(_, name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.replicas, name)
}

func (d *directory) has(name string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, ok := d.replicas[name]
	return ok
}

// stage is a fleet over a cluster that is only an API.
type stage struct {
	*testing.T
	client    *fake.Clientset
	directory *directory
	port      int
	stop      func()
}

// describe serves the model that the pod's label names.
func describe(pod *corev1.Pod) (emulation.ServerOptions, error) {
	model := pod.Labels["model"]
	if model == "" {
		return emulation.ServerOptions{}, errors.New("the pod has no label model")
	}
	options := emulation.ServerOptions{Model: model, Profile: quick}
	if pod.Labels["slow"] != "" {
		options.Profile = slow
	}
	return options, nil
}

func newStage(t *testing.T, change func(*emulation.FleetOptions)) *stage {
	t.Helper()
	s := &stage{T: t, client: fake.NewClientset(), directory: &directory{replicas: map[string]emulation.Replica{}}, port: freePort(t)}
	options := emulation.FleetOptions{Client: s.client, Port: s.port, Describe: describe, Directory: s.directory}
	if change != nil {
		change(&options)
	}
	// What this API gets between a list and the watch after it is never reported, so
	// the test begins with the watch.
	watching := make(chan struct{})
	s.client.PrependWatchReactor("pods", func(action clienttesting.Action) (bool, watch.Interface, error) {
		w, err := s.client.Tracker().Watch(action.GetResource(), action.GetNamespace())
		close(watching)
		return true, w, err
	})
	fleet, err := emulation.NewFleet(options)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- fleet.Run(ctx) }()
	<-watching
	var once sync.Once
	s.stop = func() {
		once.Do(func() {
			cancel()
			require.NoError(t, <-done)
		})
	}
	t.Cleanup(s.stop)
	return s
}

// freePort is a port that nobody uses on the addresses of the test's pods.
func freePort(t *testing.T) int {
	listener, err := net.Listen("tcp", "0.0.0.0:0")
	require.NoError(t, err)
	defer func() { _ = listener.Close() }()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	require.NoError(t, err)
	n, err := strconv.Atoi(port)
	require.NoError(t, err)
	return n
}

var lastAddress atomic.Uint32

// newPod is a running pod with an address of its own.
func newPod(name string, args ...string) *corev1.Pod {
	n := lastAddress.Add(1)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: name, UID: types.UID(fmt.Sprintf("%s-%d", name, n)),
			Labels:      map[string]string{"model": "llama"},
			Annotations: map[string]string{emulation.ServerAnnotation: ""},
		},
		Spec:   corev1.PodSpec{Containers: []corev1.Container{{Name: "vllm", Args: args}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: fmt.Sprintf("127.99.%d.%d", n/250, 1+n%250)},
	}
}

func (s *stage) address(pod *corev1.Pod) string {
	return net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(s.port))
}

func (s *stage) create(pod *corev1.Pod) {
	s.Helper()
	_, err := s.client.CoreV1().Pods(pod.Namespace).Create(s.Context(), pod, metav1.CreateOptions{})
	require.NoError(s, err)
}

// update changes the pod as it is now.
func (s *stage) update(pod *corev1.Pod, change func(*corev1.Pod)) {
	s.Helper()
	now, err := s.client.CoreV1().Pods(pod.Namespace).Get(s.Context(), pod.Name, metav1.GetOptions{})
	require.NoError(s, err)
	change(now)
	_, err = s.client.CoreV1().Pods(pod.Namespace).Update(s.Context(), now, metav1.UpdateOptions{})
	require.NoError(s, err)
}

func (s *stage) setReady(pod *corev1.Pod, status corev1.ConditionStatus) {
	s.Helper()
	s.update(pod, func(p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: status}}
	})
}

func (s *stage) terminate(pod *corev1.Pod, grace time.Duration) {
	s.Helper()
	s.update(pod, func(p *corev1.Pod) {
		p.DeletionTimestamp = ptr.To(metav1.NewTime(time.Now().Add(grace)))
		p.DeletionGracePeriodSeconds = ptr.To(int64(grace.Seconds()))
	})
}

func (s *stage) remove(pod *corev1.Pod) {
	s.Helper()
	require.NoError(s, s.client.CoreV1().Pods(pod.Namespace).Delete(s.Context(), pod.Name, metav1.DeleteOptions{}))
}

// annotated waits until the pod says whether its server answers.
func (s *stage) annotated(pod *corev1.Pod, want string) {
	s.Helper()
	require.Eventually(s, func() bool {
		now, err := s.client.CoreV1().Pods(pod.Namespace).Get(s.Context(), pod.Name, metav1.GetOptions{})
		return err == nil && now.Annotations[emulation.ReadyAnnotation] == want
	}, patience, tick)
}

func (s *stage) listens(pod *corev1.Pod) bool {
	connection, err := (&net.Dialer{Timeout: time.Second}).DialContext(s.Context(), "tcp", s.address(pod))
	if err != nil {
		return false
	}
	_ = connection.Close()
	return true
}

func TestLifeOfAReplica(t *testing.T) {
	s := newStage(t, nil)
	pod := newPod("llama-0")
	pod.Status.Phase, pod.Status.PodIP = corev1.PodPending, ""
	s.create(pod)
	address := newPod("").Status.PodIP
	pod.Status.PodIP = address
	s.update(pod, func(p *corev1.Pod) { p.Status.Phase, p.Status.PodIP = corev1.PodRunning, address })
	s.annotated(pod, "true")
	status, body := ask(t, s.address(pod), "llama", 3, 2)
	assert.Equal(t, http.StatusOK, status, body)
	assert.False(t, s.directory.has("llama-0"), "it answers, but its pod is not Ready")

	s.setReady(pod, corev1.ConditionTrue)
	require.Eventually(t, func() bool { return s.directory.has("llama-0") }, patience, tick)
	s.setReady(pod, corev1.ConditionFalse)
	require.Eventually(t, func() bool { return !s.directory.has("llama-0") }, patience, tick)
	s.setReady(pod, corev1.ConditionTrue)
	require.Eventually(t, func() bool { return s.directory.has("llama-0") }, patience, tick)
	assert.Equal(t, emulation.Replica{Namespace: "ns", Name: "llama-0", Model: "llama", Address: s.address(pod)}, s.directory.replicas["llama-0"])

	s.terminate(pod, time.Minute)
	require.Eventually(t, func() bool { return !s.directory.has("llama-0") }, patience, tick)
	s.annotated(pod, "")
	assert.False(t, s.listens(pod))
	s.remove(pod)
}

func TestStartUpTakesItsTime(t *testing.T) {
	s := newStage(t, func(o *emulation.FleetOptions) {
		o.Describe = func(*corev1.Pod) (emulation.ServerOptions, error) {
			return emulation.ServerOptions{Model: "llama", Profile: quick, Startup: time.Hour}, nil
		}
	})
	pod := newPod("llama-0")
	s.create(pod)
	require.Eventually(t, func() bool { return s.listens(pod) }, patience, tick)
	status, _ := ask(t, s.address(pod), "llama", 3, 2)
	assert.Equal(t, http.StatusServiceUnavailable, status)
	now, err := s.client.CoreV1().Pods("ns").Get(t.Context(), "llama-0", metav1.GetOptions{})
	require.NoError(t, err)
	assert.NotContains(t, now.Annotations, emulation.ReadyAnnotation)
	s.terminate(pod, time.Minute)
	require.Eventually(t, func() bool { return !s.listens(pod) }, patience, tick, "one that never started ends at once")
}

func TestTerminatingPodFinishesItsRequests(t *testing.T) {
	s := newStage(t, func(o *emulation.FleetOptions) {
		o.Describe = func(*corev1.Pod) (emulation.ServerOptions, error) {
			profile := quick
			profile.Base = 20
			return emulation.ServerOptions{Model: "llama", Profile: profile}, nil
		}
	})
	pod := newPod("llama-0")
	s.create(pod)
	s.annotated(pod, "true")
	s.setReady(pod, corev1.ConditionTrue)
	statuses := make(chan int, 1)
	go func() {
		status, _ := ask(t, s.address(pod), "llama", 3, 25)
		statuses <- status
	}()
	running := func() bool { return valueOf(t, scrape(t, s.address(pod)), "vllm:num_requests_running", nil) == 1 }
	require.Eventually(t, running, patience, tick)
	s.terminate(pod, time.Hour)
	require.Eventually(t, func() bool { return !s.listens(pod) }, patience, tick, "no new connections")
	assert.Equal(t, http.StatusOK, <-statuses)
	s.annotated(pod, "")
}

func TestRequestsAreCutOffWithTheirPod(t *testing.T) {
	for name, end := range map[string]func(*stage, *corev1.Pod){
		"the grace period ends": func(s *stage, pod *corev1.Pod) { s.terminate(pod, 10*time.Millisecond) },
		"deleted by force":      func(s *stage, pod *corev1.Pod) { s.remove(pod) },
		"the pod has failed": func(s *stage, pod *corev1.Pod) {
			s.update(pod, func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed })
		},
		"the program ends": func(s *stage, _ *corev1.Pod) { s.stop() },
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, nil)
			pod := newPod("llama-0")
			pod.Labels["slow"] = "true"
			s.create(pod)
			s.annotated(pod, "true")
			gone := make(chan error, 1)
			go func() { gone <- hang(t.Context(), s.address(pod), `{"model":"llama","prompt":"a b"}`) }()
			running := func() bool { return valueOf(t, scrape(t, s.address(pod)), "vllm:num_requests_running", nil) == 1 }
			require.Eventually(t, running, patience, tick)
			end(s, pod)
			assert.Error(t, <-gone)
		})
	}
}

// The address of a pod that ended is soon given to another one.
func TestAddressIsUsedAgain(t *testing.T) {
	s := newStage(t, nil)
	first, second := newPod("llama-0"), newPod("llama-1")
	second.Status.PodIP = first.Status.PodIP
	s.create(first)
	s.annotated(first, "true")
	s.create(second)
	s.remove(first)
	s.annotated(second, "true")
	status, _ := ask(t, s.address(second), "llama", 3, 2)
	assert.Equal(t, http.StatusOK, status)
}

func TestArgumentsOfThePodLimitTheBatch(t *testing.T) {
	s := newStage(t, nil)
	pod := newPod("llama-0", "--max-num-seqs=1", "--max_num_batched_tokens", "512")
	pod.Labels["slow"] = "true"
	s.create(pod)
	s.annotated(pod, "true")
	for range 3 {
		go func() { _ = hang(t.Context(), s.address(pod), `{"model":"llama","prompt":"a b"}`) }()
	}
	require.Eventually(t, func() bool {
		families := scrape(t, s.address(pod))
		return valueOf(t, families, "vllm:num_requests_running", nil) == 1 && valueOf(t, families, "vllm:num_requests_waiting", nil) == 2
	}, patience, tick)
}

func TestOtherPodsHaveNoServer(t *testing.T) {
	s := newStage(t, func(o *emulation.FleetOptions) {
		o.Namespace, o.LabelSelector = "ns", "model"
	})
	unmarked, unlabelled, elsewhere := newPod("unmarked"), newPod("unlabelled"), newPod("elsewhere")
	unmarked.Annotations = nil
	unlabelled.Labels = nil
	elsewhere.Namespace = "other"
	wrong := newPod("wrong", "--max-num-seqs=many")
	for _, pod := range []*corev1.Pod{unmarked, unlabelled, elsewhere, wrong} {
		s.create(pod)
	}
	last := newPod("last")
	s.create(last)
	s.annotated(last, "true")
	for _, pod := range []*corev1.Pod{unmarked, elsewhere, wrong} {
		assert.False(t, s.listens(pod), pod.Name)
	}
}

func TestAnnotationIsTriedAgain(t *testing.T) {
	var failures atomic.Int32
	s := newStage(t, func(o *emulation.FleetOptions) {
		client, _ := o.Client.(*fake.Clientset)
		client.PrependReactor("patch", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
			if failures.Add(1) <= 2 {
				return true, nil, errors.New("the API server is away")
			}
			return false, nil, nil
		})
	})
	pod := newPod("llama-0")
	s.create(pod)
	s.annotated(pod, "true")
	assert.EqualValues(t, 3, failures.Load())
}

func TestFleetRefusals(t *testing.T) {
	_, err := emulation.NewFleet(emulation.FleetOptions{Describe: describe})
	assert.Error(t, err)
	_, err = emulation.NewFleet(emulation.FleetOptions{Client: fake.NewClientset()})
	assert.Error(t, err)
}

func TestArgument(t *testing.T) {
	for name, c := range map[string]struct {
		command, args []string
		want          string
		found         bool
	}{
		"with an equals sign":     {args: []string{"serve", "--max-num-seqs=128"}, want: "128", found: true},
		"as two words":            {args: []string{"--max-num-seqs", "128", "--x"}, want: "128", found: true},
		"with underscores":        {args: []string{"--max_num_seqs=64"}, want: "64", found: true},
		"in the command":          {command: []string{"vllm", "--max_num-seqs", "32"}, want: "32", found: true},
		"the last one wins":       {command: []string{"--max-num-seqs=1"}, args: []string{"--max-num-seqs=2"}, want: "2", found: true},
		"absent":                  {args: []string{"--max-num-seqs-per-gpu=1", "max-num-seqs=3", "-max-num-seqs=4"}},
		"without its value":       {args: []string{"--max-num-seqs"}},
		"empty":                   {args: []string{"--max-num-seqs="}, found: true},
		"value with equals signs": {args: []string{"--max-num-seqs=a=b"}, want: "a=b", found: true},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{}, {Command: c.command, Args: c.args}}}}
			got, found := emulation.Argument(pod, "max-num-seqs")
			assert.Equal(t, c.want, got)
			assert.Equal(t, c.found, found)
		})
	}
}
