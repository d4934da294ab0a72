package manager_test

import "llmd.ai/workload-variant-autoscaler/test/integration/rightstest"

// rights proves that every right of the manager is needed by a request of these tests.
func rights() rightstest.Proof {
	return rightstest.Proof{Cluster: cluster, Namespace: home, Account: account, Files: []string{
		manifests + "/rbac/home.yaml", manifests + "/rbac/metrics-auth.yaml", manifests + "/rbac/observe.yaml",
		manifests + "/rbac/report.yaml", manifests + "/rbac/scale.yaml", manifests + "/rbac/victims.yaml",
		manifests + "/namespace-config/rbac.yaml",
	}}
}
