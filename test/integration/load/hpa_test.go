package load_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
)

// throughTheHPA has two targets of the same size. The manager writes the replicas of the one, and a
// HorizontalPodAutoscaler, with the file that we ship, those of the other, as the manager publishes them.
func throughTheHPA(t *testing.T, w *world) {
	s := w.site(t, "llama", "direct")
	of := func(name, model string, actuation v1alpha1.Actuation) *target {
		return s.target(t, plan{
			name: name, model: model, instance: brisk, kind: "h20", replicas: 11, held: true,
			adjust: func(_ *appsv1.Deployment, v *v1alpha1.VariantAutoscaling) { v.Spec.Actuation = actuation },
		})
	}
	direct, through := of("direct", "direct", v1alpha1.ActuationScale), of("through", "llama", v1alpha1.ActuationMetric)
	direct.serves(t, 11)
	through.serves(t, 11)

	// As most clusters have it: a tenth is tolerated, and one more than eleven is less.
	hpa := shippedHPA(t, through)
	shipped := hpa.Spec.Behavior.DeepCopy()
	hpa.Spec.Behavior.ScaleUp.Tolerance, hpa.Spec.Behavior.ScaleDown.Tolerance = nil, nil
	require.NoError(t, w.api.Create(t.Context(), hpa))
	bound := func(x *target, replicas int) {
		x.patch(t, x.variant, fmt.Sprintf(`{"spec":{"minReplicas":%d,"maxReplicas":%d}}`, replicas, replicas))
	}
	bound(direct, 12)
	bound(through, 12)
	direct.comesToAsk(t, patience, "12", exactly(12))
	// 12 wanted for 11 there are 1.091 each. What it shows is what it decided by.
	eventually(t, patience, "the HPA to see 12", func() (string, bool) {
		text := describeHPA(t, w, hpa)
		m := hpa.Status.CurrentMetrics
		return text, len(m) == 1 && m[0].External != nil && m[0].External.Current.AverageValue != nil && m[0].External.Current.AverageValue.MilliValue() == 1091
	})
	replicas, text := through.asks(t)
	assert.EqualValues(t, 11, replicas, "what is within the tolerance is not written\n%s", text)

	hpa.Spec.Behavior = shipped
	require.NoError(t, w.api.Update(t.Context(), hpa))
	through.comesToAsk(t, patience, "12", exactly(12))

	changed := time.Now()
	lag := map[string]time.Duration{}
	bound(direct, 14)
	bound(through, 14)
	for _, x := range []*target{direct, through} {
		x.comesToAsk(t, patience, "14", exactly(14))
		lag[x.variant.Name] = time.Since(changed).Round(100 * time.Millisecond)
	}
	t.Logf("asked for after %s by the manager, after %s through the HPA: scrapes every %s and the HPA's look every 5s between", lag["direct"], lag["through"], scrapeInterval)

	s.asAnybodyAsks(t, through)
	w.pretend(t, through)
	s.asAnybodyAsks(t, through)
}

// publish lets Prometheus scrape a manager as it does by default, when it gives the series the namespace of the
// manager's pod and renames their own, and once more as with honorLabels. While one manager takes
// over from another, Prometheus has the series of both.
func (w *world) publish(t *testing.T, instance string) {
	t.Helper()
	page, err := url.Parse(w.metrics[instance])
	require.NoError(t, err)
	require.NoError(t, w.cluster.AddScrapeTarget("manager-renamed", page.Host, map[string]string{"namespace": home}))
	require.NoError(t, w.cluster.AddScrapeTarget("manager-before", page.Host, map[string]string{"namespace": home, "pod": "before"}))
	require.NoError(t, w.cluster.AddScrapeTarget("manager-honored", page.Host, nil))
}

// pretend lets Prometheus scrape a pod of somebody else, in a namespace of his own, that shows another number
// under the names of a target.
func (w *world) pretend(t *testing.T, x *target) {
	t.Helper()
	page := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(out, "wva_desired_replicas{variant_name=%q,namespace=%q,accelerator_type=\"H100\",controller_instance=%q} 50\n", x.variant.Name, x.namespace, brisk)
	}))
	t.Cleanup(page.Close)
	require.NoError(t, w.cluster.AddScrapeTarget("somebody", strings.TrimPrefix(page.URL, "http://"), map[string]string{"namespace": "evil"}))
	eventually(t, patience, "what somebody else shows", func() (string, bool) {
		value, found := x.query(t, fmt.Sprintf(`max(wva_desired_replicas{namespace="evil",exported_namespace=%q})`, x.namespace))
		return fmt.Sprint(value, found), value == 50
	})
}

// shippedHPA is that of manifests/hpa for a target.
func shippedHPA(t *testing.T, x *target) *autoscalingv2.HorizontalPodAutoscaler {
	t.Helper()
	text, err := os.ReadFile(manifests + "/hpa/hpa.yaml")
	require.NoError(t, err)
	var hpa autoscalingv2.HorizontalPodAutoscaler
	require.NoError(t, yaml.UnmarshalStrict([]byte(x.own(string(text))), &hpa))
	hpa.Spec.MinReplicas = ptr.To[int32](1)
	hpa.Spec.Metrics[0].External.Metric.Selector.MatchLabels["controller_instance"] = brisk
	return &hpa
}

// own puts the target's names in the place of those of our files and pages.
func (x *target) own(text string) string {
	return strings.NewReplacer("llama-8b-h100", x.variant.Name, `"models"`, `"`+x.namespace+`"`, ": models", ": "+x.namespace).Replace(text)
}

func describeHPA(t *testing.T, w *world, hpa *autoscalingv2.HorizontalPodAutoscaler) string {
	t.Helper()
	require.NoError(t, w.api.Get(t.Context(), client.ObjectKeyFromObject(hpa), hpa))
	text, err := json.Marshal(hpa.Status)
	require.NoError(t, err)
	return string(text)
}

// asAnybodyAsks asks the API of external metrics, and Prometheus with the query of the ScaledObject.
func (s *site) asAnybodyAsks(t *testing.T, x *target) {
	t.Helper()
	ask := func(namespace, selector string) (values []string) {
		path := "/apis/external.metrics.k8s.io/v1beta1/namespaces/" + namespace + "/wva_desired_replicas"
		raw, err := s.typed.Discovery().RESTClient().Get().AbsPath(path).Param("labelSelector", selector).DoRaw(t.Context())
		require.NoError(t, err)
		var list struct {
			Items []struct {
				Value string `json:"value"`
			} `json:"items"`
		}
		require.NoError(t, json.Unmarshal(raw, &list))
		for _, item := range list.Items {
			values = append(values, item.Value)
		}
		return values
	}
	name := "variant_name=" + x.variant.Name
	for selector, want := range map[string][]string{
		name + ",exported_namespace=" + s.namespace: {"14"},
		name + ",controller_instance=" + brisk:      {"14"},
		name + ",controller_instance=other":         nil,
		name + ",namespace=" + s.namespace:          {"14"},
	} {
		assert.Equal(t, want, ask(s.namespace, selector), selector)
	}
	assert.Empty(t, ask(home, name), "another namespace sees nothing of it")

	text, err := os.ReadFile(manifests + "/hpa/scaledobject.yaml")
	require.NoError(t, err)
	var object struct {
		Spec struct {
			Triggers []struct {
				Metadata struct {
					Query            string `json:"query"`
					IgnoreNullValues string `json:"ignoreNullValues"`
				} `json:"metadata"`
			} `json:"triggers"`
		} `json:"spec"`
	}
	require.NoError(t, yaml.Unmarshal([]byte(x.own(string(text))), &object))
	require.Len(t, object.Spec.Triggers, 1)
	assert.Equal(t, "false", object.Spec.Triggers[0].Metadata.IgnoreNullValues, "by default KEDA takes no answer for 0")
	eventually(t, patience, "the answer for KEDA", func() (string, bool) {
		value, found := s.query(t, object.Spec.Triggers[0].Metadata.Query)
		return fmt.Sprint(value, found), value == 14
	})
}
