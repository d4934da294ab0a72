package scheduler

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"llmd.ai/workload-variant-autoscaler/pkg/localcluster"
)

// arm is one of the two schedulers.
type arm struct {
	name string
	// path and args start it; the configuration is appended.
	path string
	args []string
	// config is the path of its configuration.
	config string
	// schedulerName is the profile that pods with devices ask for.
	schedulerName string
}

const (
	stockName = "stock"
	oursName  = "ours"
)

// newArms writes both configurations: ours is the one that is shipped for one process
// with two profiles, the stock one's has nothing but the default.
func newArms(cluster *localcluster.Cluster, root, directory string) (map[string]*arm, error) {
	programs, err := localcluster.Programs()
	if err != nil {
		return nil, err
	}
	shipped, ourProfile, err := shippedConfig(filepath.Join(root, "manifests", "scheduler-one-process", "config.yaml"))
	if err != nil {
		return nil, err
	}
	arms := map[string]*arm{
		stockName: {name: stockName, path: filepath.Join(programs, "playground"), args: []string{"component", "kube-scheduler"}, schedulerName: corev1.DefaultSchedulerName},
		oursName:  {name: oursName, path: filepath.Join(programs, "scheduler"), schedulerName: ourProfile},
	}
	configs := map[string]map[string]any{
		stockName: {"apiVersion": shipped["apiVersion"], "kind": shipped["kind"]},
		oursName:  shipped,
	}
	for name, config := range configs {
		config["leaderElection"] = map[string]any{"leaderElect": false}
		// Far more than the machine can do, for both.
		config["clientConnection"] = map[string]any{"kubeconfig": cluster.Kubeconfig(), "qps": 100_000, "burst": 100_000}
		content, err := yaml.Marshal(config)
		if err != nil {
			return nil, fmt.Errorf("write the configuration of the scheduler %s: %w", name, err)
		}
		arms[name].config = filepath.Join(directory, name+".yaml")
		if err := os.WriteFile(arms[name].config, content, 0o600); err != nil {
			return nil, fmt.Errorf("write the configuration of the scheduler %s: %w", name, err)
		}
	}
	return arms, nil
}

// shippedConfig is the configuration in a ConfigMap that we ship, and the name of its
// profile for pods with devices.
func shippedConfig(path string) (config map[string]any, ourProfile string, err error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, "", fmt.Errorf("read the configuration that is shipped: %w", err)
	}
	var configMap corev1.ConfigMap
	if err := yaml.UnmarshalStrict(content, &configMap); err != nil {
		return nil, "", fmt.Errorf("read the ConfigMap in %s: %w", path, err)
	}
	text := []byte(configMap.Data["config.yaml"])
	var names struct {
		Profiles []struct {
			SchedulerName string `json:"schedulerName"`
		} `json:"profiles"`
	}
	if err := errors.Join(yaml.Unmarshal(text, &config), yaml.Unmarshal(text, &names)); err != nil {
		return nil, "", fmt.Errorf("read the entry config.yaml of the ConfigMap in %s: %w", path, err)
	}
	if len(names.Profiles) != 2 || names.Profiles[0].SchedulerName != corev1.DefaultSchedulerName {
		return nil, "", fmt.Errorf("the configuration in %s has other profiles than %s and ours", path, corev1.DefaultSchedulerName)
	}
	return config, names.Profiles[1].SchedulerName, nil
}

// scheduler is a running one.
type scheduler struct {
	name    string
	address string
	client  *http.Client
	cluster *localcluster.Cluster
}

// start starts the scheduler and waits until it tells an administrator its
// configuration: then it works, and it has read who administrators are.
func (a *arm) start(ctx context.Context, cluster *localcluster.Cluster) (*scheduler, error) {
	address, err := cluster.FreeAddress()
	if err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	client, err := clientOf(cluster)
	if err != nil {
		return nil, err
	}
	s := &scheduler{name: "scheduler-" + a.name, address: address, client: client, cluster: cluster}
	args := append(append([]string{}, a.args...), "--config="+a.config, "--bind-address="+host, "--secure-port="+port,
		"--authentication-kubeconfig="+cluster.Kubeconfig(), "--authorization-kubeconfig="+cluster.Kubeconfig())
	err = cluster.StartProcess(ctx, localcluster.Process{Name: s.name, Path: a.path, Args: args, Ready: func(ctx context.Context) error {
		_, err := s.get(ctx, "/configz")
		return err
	}})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// stop ends it.
func (s *scheduler) stop() error { return s.cluster.Terminate(s.name) }

// clientOf is an administrator's client for a program that made its own certificate,
// on this machine.
func clientOf(cluster *localcluster.Cluster) (*http.Client, error) {
	config := cluster.Config()
	config.TLSClientConfig.CAData, config.TLSClientConfig.CAFile = nil, ""
	config.TLSClientConfig.Insecure = true
	settings, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, err
	}
	settings.MinVersion = tls.VersionTLS12
	return &http.Client{Transport: &http.Transport{TLSClientConfig: settings, DisableKeepAlives: true}}, nil
}

func (s *scheduler) get(ctx context.Context, path string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+s.address+path, nil)
	if err != nil {
		return nil, err
	}
	response, err := s.client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("ask %s for %s: %w", s.name, path, err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("ask %s for %s: %w", s.name, path, err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("ask %s for %s: %s: %.200s", s.name, path, response.Status, body)
	}
	return body, nil
}

// cpuSeconds is the processor time that it has used.
func (s *scheduler) cpuSeconds(ctx context.Context) (float64, error) {
	metrics, err := s.get(ctx, "/metrics")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(metrics)) {
		if value, ok := strings.CutPrefix(line, "process_cpu_seconds_total "); ok {
			return strconv.ParseFloat(strings.TrimSpace(value), 64)
		}
	}
	return 0, fmt.Errorf("%s has no metric process_cpu_seconds_total", s.name)
}

// profile writes a CPU profile of the time given to the file.
func (s *scheduler) profile(ctx context.Context, length time.Duration, path string) error {
	content, err := s.get(ctx, fmt.Sprintf("/debug/pprof/profile?seconds=%d", int(length.Seconds())))
	if err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o644)
}
