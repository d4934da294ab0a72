package localcluster

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
)

// mountInterval is the time between two looks at a mounted Secret.
const mountInterval = 100 * time.Millisecond

// ApplyWebhooks is Apply for manifests that name webhooks of a program of this cluster,
// which serves them at an address (host and port). A Service leads to no address of this
// machine, so the Services among the manifests become names of the host, and their port in
// the configurations of webhooks the program's own. All else stays, the name in the
// certificate too.
func (c *Cluster) ApplyWebhooks(ctx context.Context, address string, paths ...string) error {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("apply webhooks: %w", err)
	}
	port, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return fmt.Errorf("apply webhooks at the port %q: %w", text, err)
	}
	return c.applyChanged(ctx, func(object *unstructured.Unstructured) error {
		switch object.GetKind() {
		case "Service":
			object.Object["spec"] = map[string]any{"type": string(corev1.ServiceTypeExternalName), "externalName": host}
		case "CustomResourceDefinition":
			if _, ok, _ := unstructured.NestedMap(object.Object, "spec", "conversion", "webhook"); ok {
				return unstructured.SetNestedField(object.Object, port, "spec", "conversion", "webhook", "clientConfig", "service", "port")
			}
		case "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration":
			webhooks, _, err := unstructured.NestedSlice(object.Object, "webhooks")
			if err != nil {
				return err
			}
			for _, one := range webhooks {
				if err := unstructured.SetNestedField(one.(map[string]any), port, "clientConfig", "service", "port"); err != nil {
					return err
				}
			}
			return unstructured.SetNestedSlice(object.Object, webhooks, "webhooks")
		}
		return nil
	}, paths...)
}

// MountSecret writes the entries of a Secret into a directory as files, and again when
// they change, until the context ends: as a kubelet does, all at once. The Secret may be
// missing at first.
func (c *Cluster) MountSecret(ctx context.Context, namespace, name, directory string) error {
	client, err := kubernetes.NewForConfig(c.admin)
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return fmt.Errorf("mount the Secret %s/%s: %w", namespace, name, err)
	}
	go func() {
		ticker := time.NewTicker(mountInterval)
		defer ticker.Stop()
		written := ""
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			secret, err := client.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
			if err != nil || secret.ResourceVersion == written || len(secret.Data) == 0 {
				continue // not there, not reached, or not changed
			}
			if err := writeMount(directory, secret); err != nil && !apierrors.IsNotFound(err) {
				c.failed <- fmt.Errorf("mount the Secret %s/%s: %w", namespace, name, err)
				return
			}
			written = secret.ResourceVersion
		}
	}()
	return nil
}

// writeMount has the files of one version in a directory of its own, and every file as a
// link through ..data, which changes in one step.
func writeMount(directory string, secret *corev1.Secret) error {
	version := "..version-" + secret.ResourceVersion
	if err := os.MkdirAll(filepath.Join(directory, version), 0o700); err != nil {
		return err
	}
	for key, value := range secret.Data {
		if err := os.WriteFile(filepath.Join(directory, version, key), value, 0o600); err != nil {
			return err
		}
	}
	fresh := filepath.Join(directory, "..data_new")
	if err := os.RemoveAll(fresh); err != nil {
		return err
	}
	if err := os.Symlink(version, fresh); err != nil {
		return err
	}
	if err := os.Rename(fresh, filepath.Join(directory, "..data")); err != nil {
		return err
	}
	for key := range secret.Data {
		link := filepath.Join(directory, key)
		if _, err := os.Lstat(link); err == nil {
			continue
		}
		if err := os.Symlink(filepath.Join("..data", key), link); err != nil {
			return err
		}
	}
	return nil
}
