package localcluster

import (
	"context"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// VariantSchedulerURL is where the variant scheduler serves its metrics, without a path; empty when the cluster
// has none. It asks for the certificate or token of a user who may read them.
func (c *Cluster) VariantSchedulerURL() string { return c.scheduler }

// startVariantScheduler runs our scheduler as a cluster would: with its configuration file and the token of
// its service account, for its own requests as for those that it checks.
func (c *Cluster) startVariantScheduler(ctx context.Context) error {
	wanted := c.options.Components.VariantScheduler
	kubeconfig, err := c.KubeconfigFor(ctx, wanted.Namespace, wanted.ServiceAccount)
	if err != nil {
		return fmt.Errorf("start the variant scheduler: %w", err)
	}
	config, err := c.writeSchedulerConfig(wanted.Config, kubeconfig)
	if err != nil {
		return fmt.Errorf("start the variant scheduler: %w", err)
	}
	return c.startAt(ctx, clusterLayer, func(port int) Process {
		c.scheduler = fmt.Sprintf("https://%s:%d", c.block.host(), port)
		flags := append(c.serving(port), "--config="+config,
			"--authentication-kubeconfig="+kubeconfig, "--authorization-kubeconfig="+kubeconfig)
		flags = append(flags, wanted.Args...)
		return Process{Name: "variant-scheduler", Path: c.program("scheduler"), Args: flags, Ready: c.healthyAt(port)}
	})
}

// configEntry is the key of the configuration in its ConfigMap, and in a cluster the name of the file.
const configEntry = "config.yaml"

// writeSchedulerConfig writes the configuration that a ConfigMap holds with the kubeconfig set, which inside a
// cluster is left out: with a configuration file the scheduler takes no kubeconfig from its flags.
func (c *Cluster) writeSchedulerConfig(source, kubeconfig string) (string, error) {
	content, err := os.ReadFile(source)
	if err != nil {
		return "", fmt.Errorf("read its configuration: %w", err)
	}
	var configMap corev1.ConfigMap
	if err := yaml.UnmarshalStrict(content, &configMap); err != nil {
		return "", fmt.Errorf("read its configuration, which is expected as a ConfigMap in %s: %w", source, err)
	}
	text, found := configMap.Data[configEntry]
	if !found {
		return "", fmt.Errorf("the ConfigMap in %s has no entry %s, which is the configuration", source, configEntry)
	}
	var config map[string]any
	if err := yaml.Unmarshal([]byte(text), &config); err != nil {
		return "", fmt.Errorf("read the entry %s of the ConfigMap in %s: %w", configEntry, source, err)
	}
	if config == nil {
		return "", fmt.Errorf("the entry %s of the ConfigMap in %s is empty", configEntry, source)
	}
	connection, _ := config["clientConnection"].(map[string]any)
	if connection == nil {
		connection = map[string]any{}
	}
	connection["kubeconfig"] = kubeconfig
	config["clientConnection"] = connection
	if content, err = yaml.Marshal(config); err != nil {
		return "", fmt.Errorf("write its configuration: %w", err)
	}
	path := c.file("variant-scheduler.yaml")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return "", fmt.Errorf("write its configuration: %w", err)
	}
	return path, nil
}
