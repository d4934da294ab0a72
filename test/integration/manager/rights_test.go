package manager_test

import (
	"errors"

	"llmd.ai/workload-variant-autoscaler/test/integration/rightstest"
)

// rights proves that every right of the manager is needed by a request of these tests.
func rights() rightstest.Proof {
	return rightstest.Proof{
		Cluster: cluster, Namespace: home, Account: account,
		Files: []string{
			manifests + "/rbac/home.yaml", manifests + "/rbac/metrics-auth.yaml", manifests + "/rbac/observe.yaml",
			manifests + "/rbac/report.yaml", manifests + "/rbac/scale.yaml", manifests + "/namespace-config/rbac.yaml",
		},
		Elsewhere: map[string]string{
			"workload-variant-autoscaler-report: patch events.events.k8s.io": "an event that comes again changes the one before; the tests of Llama Stack servers have some",
		},
	}
}

// everyRightIsNeeded also looks at the role that is left out where Kubernetes chooses which
// replicas go: the others must do without it.
func everyRightIsNeeded() error {
	victims := rights()
	victims.Beside, victims.Files = victims.Files, []string{manifests + "/rbac/victims.yaml"}
	victims.Elsewhere = map[string]string{
		"workload-variant-autoscaler-victims: get pods": "a pod is read again where it changed since, or the scale could not be written; the tests of pkg/controller have both",
	}
	return errors.Join(rights().Check(), victims.Check())
}
