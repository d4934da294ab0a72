package localcluster

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"
)

// prometheusUser watches pods and nothing else.
const prometheusUser = "prometheus"

// PrometheusURL is the address of Prometheus' HTTP API without a path; empty when the cluster has none.
func (c *Cluster) PrometheusURL() string { return c.prom }

// AddScrapeTarget makes Prometheus scrape one more address (host and port) as a job. Labels are added to every
// series; those that Prometheus itself reads (__scheme__, __metrics_path__) work, too. A second call for a job
// replaces the first.
func (c *Cluster) AddScrapeTarget(job, address string, labels map[string]string) error {
	all := map[string]string{"job": job}
	for name, value := range labels {
		all[name] = value
	}
	content, err := json.Marshal([]any{map[string]any{"targets": []string{address}, "labels": all}})
	if err != nil {
		return fmt.Errorf("add the scrape target %s: %w", job, err)
	}
	// Renamed into place: Prometheus never reads half a file.
	path := filepath.Join(c.file("targets"), job+".json")
	if err := os.WriteFile(path+".new", content, 0o600); err != nil {
		return fmt.Errorf("add the scrape target %s: %w", job, err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("add the scrape target %s: %w", job, err)
	}
	return nil
}

func (c *Cluster) startPrometheus(ctx context.Context) error {
	kubeconfig, err := c.writeUser(prometheusUser)
	if err != nil {
		return err
	}
	if err := c.allowPrometheus(ctx); err != nil {
		return err
	}
	config, err := c.writePrometheusConfig(kubeconfig, c.options.Components.Prometheus.ScrapeInterval)
	if err != nil {
		return err
	}
	return c.startAt(ctx, clusterLayer, func(port int) Process {
		address := net.JoinHostPort(c.block.host(), strconv.Itoa(port))
		c.prom = "http://" + address
		return c.component("prometheus", Healthy(c.prom+"/-/ready"),
			"--config.file="+config, "--storage.tsdb.path="+c.file("tsdb"), "--web.listen-address="+address)
	})
}

func (c *Cluster) allowPrometheus(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(c.admin)
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	name := metav1.ObjectMeta{Name: "localcluster-prometheus"}
	role := &rbacv1.ClusterRole{ObjectMeta: name, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list", "watch"}},
	}}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: name,
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: prometheusUser}},
	}
	if _, err := client.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("let Prometheus watch pods: %w", err)
	}
	if _, err := client.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("let Prometheus watch pods: %w", err)
	}
	return nil
}

func (c *Cluster) writePrometheusConfig(kubeconfig string, interval time.Duration) (string, error) {
	if err := os.MkdirAll(c.file("targets"), 0o700); err != nil {
		return "", fmt.Errorf("make the directory of scrape targets: %w", err)
	}
	type object = map[string]any
	every := fmt.Sprintf("%dms", interval.Milliseconds())
	config := object{
		"global": object{"scrape_interval": every, "scrape_timeout": every, "evaluation_interval": every},
		"scrape_configs": []object{{
			"job_name":              "pods",
			"kubernetes_sd_configs": []object{{"role": "pod", "kubeconfig_file": kubeconfig}},
			"relabel_configs":       podRelabelling(),
		}, {
			"job_name":        "targets",
			"file_sd_configs": []object{{"files": []string{filepath.Join(c.file("targets"), "*.json")}}},
			// Programs of this cluster serve with certificates that they made themselves.
			"tls_config": object{"insecure_skip_verify": true},
		}},
	}
	content, err := yaml.Marshal(config)
	if err != nil {
		return "", fmt.Errorf("write the configuration of Prometheus: %w", err)
	}
	path := c.file("prometheus.yaml")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return "", fmt.Errorf("write the configuration of Prometheus: %w", err)
	}
	return path, nil
}

// podRelabelling selects the pods that ask to be scraped and names their series as a PodMonitor does.
func podRelabelling() []map[string]any {
	const annotation = "__meta_kubernetes_pod_annotation_prometheus_io_"
	rule := func(action, target, regex string, sources ...string) map[string]any {
		made := map[string]any{"action": action, "regex": regex, "source_labels": sources}
		if target != "" {
			made["target_label"] = target
		}
		return made
	}
	address := rule("replace", "__address__", "(.+);(.+)", "__meta_kubernetes_pod_ip", annotation+"port")
	address["replacement"] = "$1:$2"
	return []map[string]any{
		rule("keep", "", "true", annotation+"scrape"),
		rule("keep", "", "Running", "__meta_kubernetes_pod_phase"),
		address,
		rule("replace", "__metrics_path__", "(.+)", annotation+"path"),
		rule("replace", "namespace", "(.*)", "__meta_kubernetes_namespace"),
		rule("replace", "pod", "(.*)", "__meta_kubernetes_pod_name"),
		rule("replace", "node", "(.*)", "__meta_kubernetes_pod_node_name"),
	}
}
