package adopt

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/config"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

// owner is who owns what adopt writes into a ConfigMap of others.
const owner = "kubectl-wva"

// slo is what a user wants of the latency of a model; the zero one is nothing.
type slo struct{ ttft, itl time.Duration }

func (s slo) check() error {
	for _, one := range []struct {
		name string
		is   time.Duration
	}{{"--slo-ttft", s.ttft}, {"--slo-itl", s.itl}} {
		if one.is < 0 {
			return fmt.Errorf("%s is %s: expected a time above 0, such as 50ms", one.name, one.is)
		}
	}
	return nil
}

// flags are those that say the same.
func (s slo) flags() string {
	text := ""
	if s.ttft > 0 {
		text += " --slo-ttft " + s.ttft.String()
	}
	if s.itl > 0 {
		text += " --slo-itl " + s.itl.String()
	}
	return text
}

// classes collects the service classes that give models an SLO.
type classes struct {
	there config.ServiceClasses
	wish  slo
	// of is the ConfigMap with the entries to be.
	of *corev1.ConfigMap
	// served are the models that have one.
	served map[decision.ModelKey]bool
}

func newClasses(there config.ServiceClasses, at types.NamespacedName, wish slo) *classes {
	return &classes{there: there, wish: wish, served: map[decision.ModelKey]bool{}, of: &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: at.Namespace, Name: at.Name},
		Data:       map[string]string{},
	}}
}

// add looks after the model of a Deployment, whose object may name a service class. It returns what the user should know of its SLO; empty for
// nothing.
func (c *classes) add(model decision.ModelKey, deployment string, named ...config.ClassReference) (note string, err error) {
	if c.served[model] {
		return "", nil
	}
	has := config.Dynamic{ServiceClasses: c.there}.Promise(model, named)
	switch {
	case has.Problem != "":
		return has.Problem, nil
	case has.SLO != capacity.SLO{} && c.wish != slo{}:
		return fmt.Sprintf("model %s has an SLO already, of service class %s: change it in ConfigMap %s/%s", model.ID, has.Class, c.of.Namespace, c.of.Name), nil
	case has.SLO != capacity.SLO{}:
		return "", nil
	case has.Class != "":
		return fmt.Sprintf("service class %s lists model %s without an SLO, so saturation alone sizes it: set slo-ttft, slo-tpot or both in ConfigMap %s/%s", has.Class, model.ID, c.of.Namespace, c.of.Name), nil
	case c.wish == slo{}:
		return fmt.Sprintf("model %s has no SLO, so saturation alone sizes it and nothing keeps its latency low: --slo-ttft and --slo-itl give it one", model.ID), nil
	}
	entry, err := c.wish.class(model, deployment)
	if err != nil {
		return "", fmt.Errorf("writing the service class of model %s: %w", model.ID, err)
	}
	c.of.Data[model.Namespace+"-"+deployment+".yaml"], c.served[model] = entry, true
	return "", nil
}

// class is the entry of a class of one model in one namespace. Its priority is that of a model in no
// class: an SLO makes nobody more important.
func (s slo) class(model decision.ModelKey, deployment string) (string, error) {
	target := map[string]any{"model": model.ID}
	if s.ttft > 0 {
		target["slo-ttft"] = milliseconds(s.ttft)
	}
	if s.itl > 0 {
		target["slo-tpot"] = milliseconds(s.itl)
	}
	text, err := yaml.Marshal(map[string]any{
		"name": model.Namespace + "-" + deployment, "priority": decision.LeastPriority, "namespaces": []string{model.Namespace}, "data": []any{target},
	})
	return string(text), err
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
