package emulation

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
)

// StackFleet answers for the pods of Llama Stack servers: one Stack for each ready pod that
// is asked, with the configuration and the environment that the pod has. It also stands in
// for the cluster's network: Service leads to the pods of a Service, and ServeHTTP to those
// of the Service whose name a request has.
type StackFleet struct {
	client   kubernetes.Interface
	pods     corelisters.PodLister
	services corelisters.ServiceLister
	factory  informers.SharedInformerFactory

	mu sync.Mutex
	// stacks are the servers of all pods that were ever asked, for Answered.
	stacks map[types.UID]*Stack
}

// NewStackFleet makes a fleet that knows no pods yet: Run finds them.
func NewStackFleet(client kubernetes.Interface) *StackFleet {
	factory := informers.NewSharedInformerFactory(client, 0)
	return &StackFleet{
		client: client, factory: factory, stacks: map[types.UID]*Stack{},
		pods: factory.Core().V1().Pods().Lister(), services: factory.Core().V1().Services().Lister(),
	}
}

// Run follows pods and Services until the context ends.
func (f *StackFleet) Run(ctx context.Context) {
	f.factory.Start(ctx.Done())
	<-ctx.Done()
	f.factory.Shutdown()
}

// Answered is how many requests for models the provider with an ID has answered, in all
// servers together.
func (f *StackFleet) Answered(provider string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	total := 0
	for _, s := range f.stacks {
		total += s.Answered(provider)
	}
	return total
}

// Service leads requests to the first ready pod, by name, of a Service.
func (f *StackFleet) Service(namespace, name string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) { f.lead(w, request, namespace, name) })
}

// ServeHTTP implements http.Handler: it stands in the place of all Services for a program that
// asks them by their names, <service>.<namespace> and more.
func (f *StackFleet) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	service, rest, _ := strings.Cut((&url.URL{Host: request.Host}).Hostname(), ".")
	namespace, _, _ := strings.Cut(rest, ".")
	f.lead(w, request, namespace, service)
}

func (f *StackFleet) lead(w http.ResponseWriter, request *http.Request, namespace, service string) {
	pod, err := f.podOf(namespace, service)
	if err != nil {
		refuse(w, http.StatusServiceUnavailable, err.Error())
		return
	}
	stack, err := f.stackOf(request.Context(), pod)
	if err != nil {
		refuse(w, http.StatusBadGateway, fmt.Sprintf("the server in pod %s/%s: %v", pod.Namespace, pod.Name, err))
		return
	}
	stack.ServeHTTP(w, request)
}

func (f *StackFleet) podOf(namespace, name string) (*corev1.Pod, error) {
	service, err := f.services.Services(namespace).Get(name)
	if err != nil {
		return nil, err
	}
	pods, err := f.pods.Pods(namespace).List(labels.SelectorFromSet(service.Spec.Selector))
	if err != nil {
		return nil, err
	}
	var chosen *corev1.Pod
	for _, pod := range pods {
		if ready(pod) && pod.DeletionTimestamp == nil && (chosen == nil || pod.Name < chosen.Name) {
			chosen = pod
		}
	}
	if chosen == nil {
		return nil, fmt.Errorf("the Service %s/%s has no ready pod", namespace, name)
	}
	return chosen, nil
}

// stackOf is the server in a pod, which starts with the first request.
func (f *StackFleet) stackOf(ctx context.Context, pod *corev1.Pod) (*Stack, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if stack := f.stacks[pod.UID]; stack != nil {
		return stack, nil
	}
	configuration, environment, err := f.given(ctx, pod)
	if err != nil {
		return nil, err
	}
	stack, err := NewStack(configuration, environment)
	if err != nil {
		return nil, err
	}
	f.stacks[pod.UID] = stack
	return stack, nil
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
