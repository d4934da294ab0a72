package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/v1alpha2"
	"llmd.ai/workload-variant-autoscaler/pkg/emulation"
)

const (
	// stackName is the Llama Stack server of the demo, stackProvider its vLLM provider.
	stackName     = "llama-stack"
	stackProvider = "vllm-8b"
	// stackDeadline is how long the server may take to be Ready.
	stackDeadline = 2 * time.Minute
)

// stackServer is a Llama Stack server in front of the first model: the operator in the
// manager makes its pods, and this process answers in them.
func stackServer(m model, router string) *v1alpha2.LlamaStackDistribution {
	provider := fmt.Sprintf(`{"id":%q,"provider":"vllm","endpoint":%q,"apiKey":{"name":%q,"key":"token"}}`, stackProvider, router+"/v1", stackName)
	return &v1alpha2.LlamaStackDistribution{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: stackName},
		Spec: v1alpha2.LlamaStackDistributionSpec{
			Distribution: v1alpha2.Distribution{Name: "starter"},
			Providers:    &v1alpha2.Providers{Inference: &apiextensionsv1.JSON{Raw: []byte(provider)}},
			Resources:    &v1alpha2.Resources{Models: []apiextensionsv1.JSON{{Raw: fmt.Appendf(nil, `{"name":%q,"provider":%q}`, m.ID, stackProvider)}}},
			Workload:     &v1alpha2.Workload{Replicas: new(int32(1))},
		},
	}
}

// startServers lets emulated Llama Stack servers answer in their pods. The address stands in the
// place of all Services, which this machine's network does not know.
func (s *stack) startServers() (address string, err error) {
	s.stacks = emulation.NewStackFleet(s.typed)
	s.emulation.Go(func() { s.stacks.Run(s.emulating) })
	return s.serve(s.emulating, "the Llama Stack servers", s.stacks)
}

// startStack makes the server and waits until it is Ready. Requests for the first model
// go through its Service from then on.
func (s *stack) startStack(ctx context.Context) error {
	key := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: stackName}, StringData: map[string]string{"token": "demo"}}
	if err := s.create(ctx, key); err != nil {
		return err
	}
	server := stackServer(s.plan.models[0], s.routerURL)
	if err := s.create(ctx, server); err != nil {
		return err
	}
	if err := s.awaitStack(ctx, server); err != nil {
		return err
	}
	front, err := s.serve(s.emulating, "the Service of the Llama Stack server", s.stacks.Service(namespace, stackName+"-service"))
	if err != nil {
		return err
	}
	s.stackURL = "http://" + front
	return nil
}

// awaitStack waits until the object is Ready, and its status says that the server reaches
// its provider.
func (s *stack) awaitStack(ctx context.Context, server *v1alpha2.LlamaStackDistribution) error {
	ctx, cancel := context.WithTimeoutCause(ctx, stackDeadline,
		fmt.Errorf("the Llama Stack server %s is not Ready with its provider %s within %s; run again with --logs and look at the log of the manager", stackName, stackProvider, stackDeadline))
	defer cancel()
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := s.objects.Get(ctx, types.NamespacedName{Namespace: namespace, Name: stackName}, server)
		if err == nil && server.Status.Phase == v1alpha2.PhaseReady && reachesProvider(server) {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		case <-ticker.C:
		}
	}
}

func reachesProvider(server *v1alpha2.LlamaStackDistribution) bool {
	config := server.Status.DistributionConfig
	return config != nil && slices.ContainsFunc(config.Providers, func(p v1alpha2.ProviderInfo) bool {
		return p.ProviderID == stackProvider && p.Health.Status == "OK"
	})
}

// stackLine says how many requests the provider of the server has answered; nothing
// without a server.
func (s *stack) stackLine() []string {
	if s.stackURL == "" {
		return nil
	}
	return []string{fmt.Sprintf("Llama Stack server %s: %d requests answered by its provider %s (remote::vllm)", stackName, s.stacks.Answered(stackProvider), stackProvider)}
}

// urlOf is where the requests of a model are sent.
func (s *stack) urlOf(m model) string {
	if s.stackURL != "" && m.ID == s.plan.models[0].ID {
		return s.stackURL
	}
	return s.routerURL
}
