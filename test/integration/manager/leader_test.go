package manager_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/localcluster"
	"llmd.ai/workload-variant-autoscaler/test/integration/conditiontest"
	"llmd.ai/workload-variant-autoscaler/test/integration/prometheustest"
)

// writesTo are the writes of the scale of a Deployment that the audit log has.
func writesTo(t *testing.T, d *appsv1.Deployment) []localcluster.ScaleWrite {
	t.Helper()
	all, err := cluster.ScaleWrites()
	require.NoError(t, err)
	return slices.DeleteFunc(all, func(w localcluster.ScaleWrite) bool { return w.Namespace != d.Namespace || w.Name != d.Name })
}

// startHurried starts one more manager of an instance, which ends with the test, and
// returns its name and the name of its token.
func startHurried(t *testing.T, instance, name string, more ...string) string {
	t.Helper()
	return startProgram(t, filepath.Join(programs, "manager"), instance, name, more...)
}

// startProgram does the same with the manager of a file.
func startProgram(t *testing.T, path, instance, name string, more ...string) string {
	t.Helper()
	kubeconfig, err := cluster.KubeconfigFor(t.Context(), home, account)
	require.NoError(t, err)
	credentialOf[name], err = localcluster.Credential(kubeconfig)
	require.NoError(t, err)
	return startFrom(t, path, kubeconfig, instance, name, more...)
}

// startWith does the same with a kubeconfig.
func startWith(t *testing.T, kubeconfig, instance, name string, more ...string) string {
	t.Helper()
	return startFrom(t, filepath.Join(programs, "manager"), kubeconfig, instance, name, more...)
}

func startFrom(t *testing.T, path, kubeconfig, instance, name string, more ...string) string {
	t.Helper()
	metrics, err := cluster.FreeAddress()
	require.NoError(t, err)
	health, err := cluster.FreeAddress()
	require.NoError(t, err)
	process := managerProcess(instance, kubeconfig, metrics, health)
	process.Name, process.Path = name, path
	process.Args = append(process.Args, hurry...)
	process.Args = append(process.Args, more...)
	metricsOf[name] = "http://" + metrics + "/metrics"
	require.NoError(t, cluster.StartProcess(t.Context(), process))
	return name
}

// hasAtLeast waits until a target asks for so many replicas. A rise may be carried on for
// a while, so that more is right, too.
func hasAtLeast(t *testing.T, d *appsv1.Deployment, v *v1alpha1.VariantAutoscaling, replicas int32) {
	t.Helper()
	conditiontest.Eventually(t, patience, fmt.Sprint("at least ", replicas, " replicas"), func() (string, bool) {
		return describe(read(t, v)), *read(t, d).Spec.Replicas >= replicas
	})
}

// Two instances and a manager without one share a cluster under load: each writes to the
// targets of its own objects alone, and shows no others.
func TestInstancesNeverTouchEachOthersObjects(t *testing.T) {
	second := startHurried(t, "second", "second")
	t.Cleanup(func() { require.NoError(t, cluster.Terminate(second)) })
	servers := serveModels(t)
	type tenant struct {
		manager string
		d       *appsv1.Deployment
		v       *v1alpha1.VariantAutoscaling
	}
	var tenants []tenant
	for _, manager := range []string{"", brisk, second} {
		namespace := space(t)
		servers.ask(namespace, 0.9*serves)
		x := tenant{manager, deployment(namespace, "server", 1), variant(namespace, "llama-h100", "server", manager)}
		create(t, x.d, x.v)
		tenants = append(tenants, x)
	}
	for _, x := range tenants {
		hasAtLeast(t, x.d, x.v, 2)
	}
	for _, x := range tenants {
		servers.ask(x.d.Namespace, 4*serves)
	}
	for _, x := range tenants {
		hasAtLeast(t, x.d, x.v, 4)
		writes := writesTo(t, x.d)
		assert.GreaterOrEqual(t, len(writes), 2)
		for _, w := range writes {
			assert.Equal(t, credentialOf[x.manager], w.Credential, "the write of %d replicas of the target of instance %q", w.Replicas, x.manager)
			assert.Greater(t, w.Replicas, int32(1), "%+v", w)
		}
		for _, other := range tenants {
			series := prometheustest.Scrape(t, metricsOf[other.manager])
			for name := range series {
				if strings.HasPrefix(name, "wva_desired_replicas{") && strings.Contains(name, `namespace="`+x.d.Namespace+`"`) {
					assert.Equal(t, x.manager, other.manager, "%s is shown by another instance", name)
					assert.Equal(t, x.manager != "", strings.Contains(name, `controller_instance="`+x.manager+`"`), name)
				}
			}
		}
	}
}

// The leader of two is killed under a load that rises: the other one goes on, and the audit
// log has no write that is not the leader's, nor one that takes replicas away.
func TestTheNextLeaderGoesOn(t *testing.T) {
	election := []string{"--leader-elect", "--leader-election-lease-duration=3s", "--leader-election-renew-deadline=2s", "--leader-election-retry-period=500ms"}
	// What is wrong with a ConfigMap is told by the leader, and by the next one when it leads.
	wrong := configMap(t, "pair-thresholds", map[string]string{"default": "kvCacheThreshold: 80"})
	election = append(election, "--saturation-config-map-name="+wrong.Name)
	first := startHurried(t, "pair", "pair-first", election...)
	servers := serveModels(t)
	namespace := space(t)
	servers.ask(namespace, 0.9*serves)
	d, v := deployment(namespace, "server", 1), variant(namespace, "llama-h100", "server", "pair")
	v.Spec.Behavior = nil // its window of five minutes: nothing may go here
	create(t, d, v)
	hasAtLeast(t, d, v, 2)
	next := startHurried(t, "pair", "pair-next", election...)
	t.Cleanup(func() { require.NoError(t, cluster.Terminate(next)) })
	servers.settle(t, namespace, 2)

	before := *read(t, d).Spec.Replicas
	assert.Equal(t, []string{"InvalidConfiguration"}, told(t, wrong), "one of the two tells")
	servers.ask(namespace, 4*serves)
	require.NoError(t, cluster.Kill(first))
	// What it had sent may be answered a moment later; the lease ends long after that.
	killed := time.Now().Add(time.Second)
	hasAtLeast(t, d, v, before+1)
	conditiontest.Eventually(t, patience, "rounds of the next leader", func() (string, bool) {
		rounds := prometheustest.Scrape(t, metricsOf[next])[`wva_round_duration_seconds{controller_instance="pair",result="success",round="Full"}`]
		return fmt.Sprint(rounds), rounds >= 3
	})
	conditiontest.Eventually(t, patience, "the event of the next leader", func() (string, bool) {
		reasons := told(t, wrong)
		return fmt.Sprint(reasons), count(reasons, "InvalidConfiguration") == 2
	})
	last := int32(1)
	for _, w := range writesTo(t, d) {
		by := first
		if w.At.After(killed) {
			by = next
		}
		assert.Equal(t, credentialOf[by], w.Credential, "%+v", w)
		assert.Greater(t, w.Replicas, last, "no write takes replicas away, and none repeats another: %+v", w)
		last = w.Replicas
	}
}

// Two managers with one instance and no common lease, whose settings differ: the one wants two
// replicas and the other one. After the second change it is left to one of them, and the
// object says who else there is.
func TestTwoManagersOfOneInstanceDoNotFight(t *testing.T) {
	servers := serveModels(t)
	namespace := space(t)
	servers.ask(namespace, 0.5*serves)
	configMap(t, "twin-thresholds", map[string]string{"default": "kvCacheThreshold: 0.4"})
	for name, more := range map[string]string{"twin-low": "wva-saturation-scaling-config", "twin-high": "twin-thresholds"} {
		twin := startHurried(t, "twin", name, "--saturation-config-map-name="+more)
		t.Cleanup(func() { assert.NoError(t, cluster.Terminate(twin)) })
	}
	d, v := deployment(namespace, "server", 1), variant(namespace, "llama-h100", "server", "twin")
	create(t, d, v)
	conditiontest.Eventually(t, 2*patience, "the conflict with the other manager", func() (string, bool) {
		found := apimeta.FindStatusCondition(read(t, v).Status.Conditions, v1alpha1.ConditionConflict)
		return describe(v), found != nil && found.Reason == string(decision.ReasonReplicasOverwritten) &&
			strings.Contains(found.Message, "field manager "+v1alpha1.FieldManager+" keeps changing the replicas")
	})
	before := len(writesTo(t, d))
	for _, twin := range []string{"twin-low", "twin-high"} {
		series := `wva_round_duration_seconds{controller_instance="twin",result="success",round="Full"}`
		first := prometheustest.Scrape(t, metricsOf[twin])[series]
		conditiontest.Eventually(t, patience, "more rounds of "+twin, func() (string, bool) {
			rounds := prometheustest.Scrape(t, metricsOf[twin])[series]
			return fmt.Sprint(rounds - first), rounds >= first+4
		})
	}
	assert.LessOrEqual(t, len(writesTo(t, d))-before, 1, "one of the two has given up: %v", writesTo(t, d))
}
