package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/config"
	"llmd.ai/workload-variant-autoscaler/pkg/release"
)

// mapTimeout bounds the reading of the ConfigMap.
const mapTimeout = 20 * time.Second

// start is what the manager knows before it starts.
type start struct {
	config  config.Config
	sources config.Sources
	cluster *rest.Config
}

// load reads the settings from everywhere. Its error names all that is wrong at once.
func load(ctx context.Context, o *options, flags *pflag.FlagSet) (start, error) {
	sources, fileErr := o.sources(flags, os.LookupEnv)
	cluster, err := ctrl.GetConfig()
	if err != nil {
		err = fmt.Errorf("finding the cluster (set --kubeconfig, KUBECONFIG, or run inside one): %w", err)
	} else {
		cluster.QPS = noLimit
		cluster.UserAgent = "workload-variant-autoscaler/" + release.This().Version
		err = readMap(ctx, cluster, &sources)
	}
	loaded, loadErr := config.Load(sources)
	return start{loaded, sources, cluster}, errors.Join(fileErr, err, loadErr, config.Files(sources, unreadable))
}

// unreadable says why a file cannot be read.
func unreadable(path string) error {
	file, err := os.Open(path)
	if err != nil {
		var why *fs.PathError
		if errors.As(err, &why) {
			return why.Err
		}
		return err
	}
	return file.Close()
}

// readMap reads the main ConfigMap as it is before anything is cached. There need not be
// one.
func readMap(ctx context.Context, cluster *rest.Config, sources *config.Sources) error {
	namespace, name := config.Located(*sources)
	sources.MapName = namespace + "/" + name
	if namespace == "" || name == "" {
		return nil // which is refused with the other settings
	}
	bounded := rest.CopyConfig(cluster)
	bounded.Timeout = mapTimeout
	api, err := client.New(bounded, client.Options{})
	if err != nil {
		return fmt.Errorf("making a client for ConfigMap %s: %w", sources.MapName, err)
	}
	var object corev1.ConfigMap
	err = api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &object)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading ConfigMap %s, which manifests/rbac/home.yaml permits: %w", sources.MapName, err)
	}
	sources.Map, err = config.Entries(&object)
	return err
}
