package emulation

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/klog/v2"
)

// stackSelector are the pods of Llama Stack servers, as their operator labels them.
const stackSelector = "app=llama-stack"

// stackInterval is the time between two looks at the pods.
const stackInterval = 200 * time.Millisecond

// StackFleet runs one Stack for every running pod of a Llama Stack server in a namespace,
// at the pod's address and port, with the configuration and the environment that the pod
// has. It also stands in for the cluster's network: Service leads to the ready pods of a
// Service, and ServeHTTP is a proxy that knows the names of Services.
type StackFleet struct {
	client    kubernetes.Interface
	namespace string
	pods      corelisters.PodLister
	services  corelisters.ServiceLister
	factory   informers.SharedInformerFactory
	logger    klog.Logger
	wait      sync.WaitGroup
	running   map[types.UID]context.CancelFunc
}

// NewStackFleet makes a fleet without servers.
func NewStackFleet(client kubernetes.Interface, namespace string) *StackFleet {
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace))
	return &StackFleet{
		client: client, namespace: namespace, factory: factory, running: map[types.UID]context.CancelFunc{},
		pods: factory.Core().V1().Pods().Lister(), services: factory.Core().V1().Services().Lister(),
	}
}

// Run follows the pods until the context ends, and returns when every server is gone.
func (f *StackFleet) Run(ctx context.Context) error {
	f.logger = klog.FromContext(ctx).WithName("stacks")
	selector, err := labels.Parse(stackSelector)
	if err != nil {
		return err
	}
	f.factory.Start(ctx.Done())
	f.factory.WaitForCacheSync(ctx.Done())
	defer f.wait.Wait()
	ticker := time.NewTicker(stackInterval)
	defer ticker.Stop()
	for {
		pods, err := f.pods.Pods(f.namespace).List(selector)
		if err != nil {
			return err
		}
		f.follow(ctx, pods)
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// follow starts the servers of new pods, and stops those of pods that end.
func (f *StackFleet) follow(ctx context.Context, pods []*corev1.Pod) {
	there := map[types.UID]bool{}
	for _, pod := range pods {
		if pod.Status.Phase != corev1.PodRunning || pod.Status.PodIP == "" || pod.DeletionTimestamp != nil {
			continue
		}
		there[pod.UID] = true
		if f.running[pod.UID] != nil {
			continue
		}
		if err := f.serve(ctx, pod); err != nil {
			f.logger.Error(err, "A Llama Stack server does not start, and is tried again", "pod", pod.Name)
		}
	}
	for uid, stop := range f.running {
		if !there[uid] {
			stop()
			delete(f.running, uid)
		}
	}
}

func (f *StackFleet) serve(ctx context.Context, pod *corev1.Pod) error {
	configuration, environment, err := f.given(ctx, pod)
	if err != nil {
		return err
	}
	stack, err := NewStack(configuration, environment)
	if err != nil {
		return err
	}
	port := pod.Spec.Containers[0].Ports[0].ContainerPort
	listener, err := net.Listen("tcp", net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(int(port))))
	if err != nil {
		return err
	}
	server := &http.Server{Handler: stack, ReadHeaderTimeout: 10 * time.Second}
	serving, stop := context.WithCancel(ctx)
	f.running[pod.UID] = stop
	f.wait.Go(func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			f.logger.Error(err, "A Llama Stack server ended", "pod", pod.Name)
		}
	})
	context.AfterFunc(serving, func() { _ = server.Close() })
	return nil
}

// given is what a kubelet gives the container: the mounted configuration, and the
// environment with the values of Secrets.
func (f *StackFleet) given(ctx context.Context, pod *corev1.Pod) (configuration []byte, environment map[string]string, err error) {
	for _, volume := range pod.Spec.Volumes {
		if volume.Name != "user-config" || volume.ConfigMap == nil {
			continue
		}
		mounted, err := f.client.CoreV1().ConfigMaps(pod.Namespace).Get(ctx, volume.ConfigMap.Name, metav1.GetOptions{})
		if err != nil {
			return nil, nil, err
		}
		configuration = []byte(mounted.Data["config.yaml"])
	}
	environment = map[string]string{}
	for _, variable := range pod.Spec.Containers[0].Env {
		environment[variable.Name] = variable.Value
		if from := variable.ValueFrom; from != nil && from.SecretKeyRef != nil {
			secret, err := f.client.CoreV1().Secrets(pod.Namespace).Get(ctx, from.SecretKeyRef.Name, metav1.GetOptions{})
			if err != nil {
				return nil, nil, err
			}
			environment[variable.Name] = string(secret.Data[from.SecretKeyRef.Key])
		}
	}
	return configuration, environment, nil
}

// Service leads requests to the first ready pod, by name, of a Service.
func (f *StackFleet) Service(name string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) { f.lead(w, request, name) })
}

// ServeHTTP implements http.Handler: it is the proxy of a program that asks Services by
// their names.
func (f *StackFleet) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	service, rest, _ := strings.Cut(request.URL.Hostname(), ".")
	if namespace, _, _ := strings.Cut(rest, "."); namespace != f.namespace {
		refuse(w, http.StatusBadGateway, fmt.Sprintf("%s is no Service in the namespace %s", request.URL.Host, f.namespace))
		return
	}
	f.lead(w, request, service)
}

func (f *StackFleet) lead(w http.ResponseWriter, request *http.Request, name string) {
	address, err := f.endpoint(name)
	if err != nil {
		refuse(w, http.StatusServiceUnavailable, err.Error())
		return
	}
	proxy := &httputil.ReverseProxy{
		FlushInterval: -1,
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: address}) },
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			refuse(w, http.StatusBadGateway, err.Error())
		},
	}
	proxy.ServeHTTP(w, request)
}

func (f *StackFleet) endpoint(name string) (string, error) {
	service, err := f.services.Services(f.namespace).Get(name)
	if err != nil {
		return "", err
	}
	pods, err := f.pods.Pods(f.namespace).List(labels.SelectorFromSet(service.Spec.Selector))
	if err != nil {
		return "", err
	}
	var chosen *corev1.Pod
	for _, pod := range pods {
		if takesRequests(pod) && (chosen == nil || pod.Name < chosen.Name) {
			chosen = pod
		}
	}
	if chosen == nil {
		return "", fmt.Errorf("the Service %s has no ready pod", name)
	}
	return net.JoinHostPort(chosen.Status.PodIP, strconv.Itoa(int(service.Spec.Ports[0].TargetPort.IntVal))), nil
}

func takesRequests(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue && pod.DeletionTimestamp == nil
		}
	}
	return false
}
