// Program render prints what the chart gives, as "helm template" does, for those who have
// no helm.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/cli/values"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/releaseutil"
)

// request is what is to be rendered.
type request struct {
	chart, name, namespace, kubernetes string
	files                              []string
}

func main() {
	var r request
	flag.StringVar(&r.chart, "chart", "charts/workload-variant-autoscaler", "folder of the chart")
	flag.StringVar(&r.name, "name", "workload-variant-autoscaler", "name of the release")
	flag.StringVar(&r.namespace, "namespace", "workload-variant-autoscaler-system", "namespace of the release")
	flag.StringVar(&r.kubernetes, "kubernetes", "v1.36.0", "version of the cluster that it is for")
	flag.Func("values", "file of values, which may be given several times; the last counts", func(path string) error {
		r.files = append(r.files, path)
		return nil
	})
	flag.Parse()
	if err := r.write(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "render:", err)
		os.Exit(1)
	}
}

// write prints every object, in the order in which Helm installs them.
func (r request) write(to io.Writer) error {
	chart, err := loader.Load(r.chart)
	if err != nil {
		return fmt.Errorf("load the chart %s: %w", r.chart, err)
	}
	options := values.Options{ValueFiles: r.files}
	given, err := options.MergeValues(nil)
	if err != nil {
		return err
	}
	version, err := chartutil.ParseKubeVersion(r.kubernetes)
	if err != nil {
		return fmt.Errorf("-kubernetes %q is no version such as v1.36.0: %w", r.kubernetes, err)
	}
	if wanted := chart.Metadata.KubeVersion; !chartutil.IsCompatibleRange(wanted, version.Version) {
		return fmt.Errorf("the chart needs Kubernetes %s, and -kubernetes is %s", wanted, version.Version)
	}
	capabilities := chartutil.DefaultCapabilities.Copy()
	capabilities.KubeVersion = *version
	release := chartutil.ReleaseOptions{Name: r.name, Namespace: r.namespace, Revision: 1, IsInstall: true}
	all, err := chartutil.ToRenderValues(chart, given, release, capabilities)
	if err != nil {
		return err
	}
	files, err := engine.Render(chart, all)
	if err != nil {
		return err
	}
	for name := range files {
		if !strings.HasSuffix(name, ".yaml") {
			delete(files, name)
		}
	}
	hooks, manifests, err := releaseutil.SortManifests(files, nil, releaseutil.InstallOrder)
	if err != nil {
		return err
	}
	for _, hook := range hooks {
		manifests = append(manifests, releaseutil.Manifest{Name: hook.Path, Content: hook.Manifest})
	}
	for _, m := range manifests {
		if _, err := fmt.Fprintf(to, "---\n# Source: %s\n%s\n", m.Name, strings.TrimSpace(m.Content)); err != nil {
			return err
		}
	}
	return nil
}
