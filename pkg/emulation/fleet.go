package emulation

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

const (
	// ServerAnnotation marks a pod whose model server is emulated; its value does
	// not matter.
	ServerAnnotation = "emulation.llmd.ai/model-server"
	// ReadyAnnotation is "true" while the pod's model server answers. What plays the
	// kubelet makes the pod Ready by it.
	ReadyAnnotation = "emulation.llmd.ai/ready"
	// DefaultPort is the port of a model server.
	DefaultPort = 8000

	// retryInterval is the pause after a failed attempt to listen or to patch.
	retryInterval = 200 * time.Millisecond
)

// Directory learns which replicas may be sent requests. A Router is one. Both
// calls may be repeated.
type Directory interface {
	Add(Replica)
	Remove(namespace, name string)
}

// Replica is a model server that may be sent requests.
type Replica struct {
	// Namespace and Name are those of its pod.
	Namespace, Name string
	// Model is what it serves.
	Model string
	// Address is its host and port.
	Address string
}

// FleetOptions describe which pods get a model server, and what kind of one.
type FleetOptions struct {
	// Client reads pods and patches their annotations.
	Client kubernetes.Interface
	// Namespace limits the pods to one namespace; empty means all of them.
	Namespace string
	// LabelSelector limits the pods further, in the form of kubectl.
	LabelSelector string
	// Port is where the model servers listen, on the address of their pod; 0 means
	// DefaultPort. The machine must own these addresses, as it owns 127.0.0.0/8.
	Port int
	// Describe says what a pod serves. The pod's arguments --max-num-seqs and
	// --max-num-batched-tokens override what it returns.
	Describe func(*corev1.Pod) (ServerOptions, error)
	// Directory, if set, hears of every replica that becomes Ready or is no longer.
	Directory Directory
}

// Fleet runs one Server for every pod that has the annotation ServerAnnotation, is
// Running and has an address. When the server has started, the pod gets the
// annotation ReadyAnnotation. When the pod is deleted, the server takes no more
// requests, finishes those in flight for as long as the pod's grace period lasts,
// and then takes the annotation back, by which the pod may end.
type Fleet struct {
	options FleetOptions
	logger  klog.Logger
	wait    sync.WaitGroup

	// members are touched by the informer's handler alone, which is called by one
	// goroutine.
	members map[types.UID]*member
}

// member is one pod with its server.
type member struct {
	replica Replica
	uid     types.UID
	server  *Server
	listed  bool
	// stop ends the service; deadline says, from then on, how long requests in
	// flight may take.
	stop     context.CancelFunc
	deadline time.Time
}

// NewFleet makes a fleet without servers.
func NewFleet(options FleetOptions) (*Fleet, error) {
	if options.Client == nil || options.Describe == nil {
		return nil, errors.New("fleet of model servers: a client and a description of the pods are needed")
	}
	if options.Port == 0 {
		options.Port = DefaultPort
	}
	return &Fleet{options: options, members: map[types.UID]*member{}}, nil
}

// Run follows the pods until the context ends; then it cuts all connections and
// returns when every server is gone.
func (f *Fleet) Run(ctx context.Context) error {
	f.logger = klog.FromContext(ctx).WithName("fleet")
	factory := informers.NewSharedInformerFactoryWithOptions(f.options.Client, 0,
		informers.WithNamespace(f.options.Namespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = f.options.LabelSelector }))
	informer := factory.Core().V1().Pods().Informer()
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { f.seen(ctx, o) },
		UpdateFunc: func(_, o any) { f.seen(ctx, o) },
		DeleteFunc: f.deleted,
	})
	if err != nil {
		return fmt.Errorf("fleet of model servers: watching pods: %w", err)
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), registration.HasSynced) && ctx.Err() == nil {
		return errors.New("fleet of model servers: the pods could not be listed")
	}
	<-ctx.Done()
	factory.Shutdown()
	f.wait.Wait()
	return nil
}

// seen brings one pod's server in line with the pod.
func (f *Fleet) seen(ctx context.Context, object any) {
	pod, ok := object.(*corev1.Pod)
	if !ok || ctx.Err() != nil {
		return
	}
	if _, marked := pod.Annotations[ServerAnnotation]; !marked {
		return
	}
	m := f.members[pod.UID]
	switch {
	case pod.DeletionTimestamp != nil:
		f.end(m, pod.DeletionTimestamp.Time)
	case pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed:
		f.end(m, time.Now())
	case pod.Status.Phase != corev1.PodRunning || pod.Status.PodIP == "":
	default:
		if m == nil {
			m = f.begin(ctx, pod)
		}
		f.list(m, ready(pod))
	}
}

func (f *Fleet) deleted(object any) {
	if tombstone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = tombstone.Obj
	}
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return
	}
	// A pod that is gone before it was seen terminating was deleted by force.
	deadline := time.Now()
	if pod.DeletionTimestamp != nil {
		deadline = pod.DeletionTimestamp.Time
	}
	f.end(f.members[pod.UID], deadline)
	delete(f.members, pod.UID)
}

// begin starts the server of a pod. A pod that cannot be described is remembered
// without a server, so that it is reported once.
func (f *Fleet) begin(ctx context.Context, pod *corev1.Pod) *member {
	m := &member{uid: pod.UID, replica: Replica{Namespace: pod.Namespace, Name: pod.Name}}
	f.members[pod.UID] = m
	server, err := f.serverOf(pod)
	if err != nil {
		f.logger.Error(err, "No model server for pod", "pod", klog.KObj(pod))
		return m
	}
	m.server = server
	m.replica.Model = server.options.Model
	m.replica.Address = net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(f.options.Port))
	serving, stop := context.WithCancel(ctx)
	m.stop = stop
	f.wait.Go(func() { f.serve(ctx, serving, m) })
	return m
}

func (f *Fleet) serverOf(pod *corev1.Pod) (*Server, error) {
	options, err := f.options.Describe(pod)
	if err != nil {
		return nil, err
	}
	if options, err = obey(pod, options); err != nil {
		return nil, err
	}
	return NewServer(options)
}

// list tells the directory, when it changed, whether a replica is Ready.
func (f *Fleet) list(m *member, listed bool) {
	if m.server == nil || m.listed == listed || f.options.Directory == nil {
		return
	}
	m.listed = listed
	if listed {
		f.options.Directory.Add(m.replica)
	} else {
		f.options.Directory.Remove(m.replica.Namespace, m.replica.Name)
	}
}

// end stops a server once: nothing new is sent to it, and what is in flight may
// take until the deadline.
func (f *Fleet) end(m *member, deadline time.Time) {
	if m == nil || m.server == nil || !m.deadline.IsZero() {
		return
	}
	f.list(m, false)
	m.deadline = deadline
	m.stop()
}

// serve is the life of one server: its context ends with the pod, that of the
// fleet with the program.
func (f *Fleet) serve(fleet, pod context.Context, m *member) {
	logger := f.logger.WithValues("pod", klog.KRef(m.replica.Namespace, m.replica.Name), "address", m.replica.Address)
	defer func() { _ = m.server.Close() }()
	listener := listen(pod, logger, m.replica.Address)
	if listener == nil {
		return
	}
	f.wait.Go(func() {
		if err := m.server.Serve(listener); err != nil {
			logger.Error(err, "The model server ended")
		}
	})
	select {
	case <-m.server.Started():
		f.annotate(pod, logger, m, `"true"`)
		<-pod.Done()
	case <-pod.Done():
	}
	if fleet.Err() != nil {
		return
	}
	draining, cancel := context.WithDeadline(fleet, m.deadline)
	defer cancel()
	if err := m.server.Shutdown(draining); err != nil && fleet.Err() == nil {
		logger.Info("Requests in flight were cut off at the end of the grace period", "reason", err.Error())
	}
	ending, cancel := context.WithTimeout(fleet, 10*time.Second)
	defer cancel()
	f.annotate(ending, logger, m, "null")
}

// listen waits for an address that an earlier pod still holds; nil means that the
// context ended.
func listen(ctx context.Context, logger klog.Logger, address string) net.Listener {
	for attempt := 1; ; attempt++ {
		var config net.ListenConfig
		listener, err := config.Listen(ctx, "tcp", address)
		if err == nil {
			return listener
		}
		if ctx.Err() != nil {
			return nil
		}
		if attempt == 5 { // an earlier pod would have let go of it by now
			logger.Error(err, "The model server cannot listen on the address of its pod; trying again")
		}
		if !pause(ctx, retryInterval) {
			return nil
		}
	}
}

// annotate writes the annotation ReadyAnnotation, null to take it away, until it
// succeeds or the pod is gone.
func (f *Fleet) annotate(ctx context.Context, logger klog.Logger, m *member, value string) {
	// The UID keeps the patch from a pod that has only the same name.
	patch := fmt.Appendf(nil, `{"metadata":{"uid":%q,"annotations":{%q:%s}}}`, m.uid, ReadyAnnotation, value)
	for {
		_, err := f.options.Client.CoreV1().Pods(m.replica.Namespace).
			Patch(ctx, m.replica.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "emulation"})
		if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) || ctx.Err() != nil {
			return
		}
		logger.Error(err, "The pod's readiness could not be written; trying again")
		if !pause(ctx, retryInterval) {
			return
		}
	}
}

// pause reports whether the time passed before the context ended.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func ready(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
