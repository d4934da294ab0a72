package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/adopt"
	served "llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/capacity"
	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/installation"
	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/output"
	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/config"
	"llmd.ai/workload-variant-autoscaler/pkg/scenario"
)

// readCluster reads the cluster that the flags name.
func (o *options) readCluster(ctx context.Context, notes io.Writer) (scenario.Live, error) {
	names := types.NamespacedName{Namespace: o.namespace}
	if o.names != "" {
		namespace, name, ok := strings.Cut(o.names, "/")
		if !ok || namespace == "" || name == "" {
			return scenario.Live{}, fmt.Errorf("--accelerator-names is %q: expected NAMESPACE/NAME", o.names)
		}
		names = types.NamespacedName{Namespace: namespace, Name: name}
	}
	namespace, err := o.live.Namespace()
	if err != nil {
		return scenario.Live{}, err
	}
	api, err := o.live.Client()
	if err != nil {
		return scenario.Live{}, err
	}
	return o.readLive(ctx, api, namespace, names, notes)
}

// readLive makes a scenario of the cluster and the variants of a namespace, or with none of
// all. A variant whose replicas cannot be counted is left out with a note, and what it
// holds is other work.
func (o *options) readLive(ctx context.Context, api client.Client, namespace string, names types.NamespacedName, notes io.Writer) (scenario.Live, error) {
	live := scenario.Live{SLO: capacity.SLO{TTFT: capacity.Milliseconds(o.sloTTFT), ITL: capacity.Milliseconds(o.sloITL)}}
	seen, err := o.readServed(ctx, api, namespace, names)
	if err != nil {
		return live, err
	}
	switch {
	case len(seen.Variants) == 0 && o.past != nil:
		return live, o.nothingServes(namespace, seen.Notes)
	case len(seen.Variants) == 0:
		return live, errors.New("--from-cluster: " + strings.Join(seen.Notes, "; ") + ": expected at least one VariantAutoscaling object")
	case seen.Cluster == nil:
		return live, errors.New("--from-cluster: " + strings.Join(seen.Notes, "; "))
	}
	live.Cluster = seen.Cluster
	for _, v := range seen.Variants {
		if v.Request == nil {
			seen.Notes = append(seen.Notes, fmt.Sprintf("variant %s/%s is left out, and its pods are other work: %s", v.Object.Namespace, v.Object.Name, v.Problem))
			continue
		}
		live.Variants = append(live.Variants, scenario.LiveVariant{Object: v.Object, Request: v.Request})
		o.addServer(&v)
	}
	if len(live.Variants) == 0 {
		return live, errors.New("--from-cluster: " + strings.Join(seen.Notes, "; "))
	}
	bounds, err := boundByOthers(ctx, api, live.Variants)
	if err != nil {
		return live, err
	}
	settings, err := o.readSettings(ctx, api, &live)
	for _, note := range slices.Concat(seen.Notes, bounds, settings) {
		output.Note(notes, note)
	}
	return live, err
}

// nothingServes is the error about a model that is not in the cluster.
func (o *options) nothingServes(namespace string, notes []string) error {
	where := "namespace " + namespace
	if namespace == "" {
		where = "all namespaces"
	}
	if len(notes) > 0 {
		where += " (" + strings.Join(notes, "; ") + ")"
	}
	return fmt.Errorf("--from-prometheus: no VariantAutoscaling object and no Deployment that names its model is of %s in %s: expected another --namespace, or a --scenario that says how the model is served",
		o.model, where)
}

// readServed reads the variants that are meant: of a model whose past is replayed only its
// own.
func (o *options) readServed(ctx context.Context, api client.Client, namespace string, names types.NamespacedName) (*served.Served, error) {
	if o.past == nil {
		return served.ReadServed(ctx, api, namespace, names)
	}
	return served.ReadServedModel(ctx, api, namespace, names, o.model, func(ctx context.Context) ([]*v1alpha1.VariantAutoscaling, []string, error) {
		return adopt.OfModel(ctx, api, namespace, o.namespace, o.model)
	})
}

// readSettings reads the manager's ConfigMaps, and those of the variants' namespaces where the
// manager does. Those that are not there, or may not be read, hold nothing, and a note says
// so; but for those that few have.
func (o *options) readSettings(ctx context.Context, api client.Reader, live *scenario.Live) (notes []string, err error) {
	where, why, unclear := installation.Locate(ctx, api, o.namespace)
	if unclear {
		notes = append(notes, "the settings are those of the plain manifests: "+why)
	}
	if why != "" {
		why = " (" + why + ")"
	}
	if why == "" {
		if live.Configuration, err = where.File(); err != nil {
			return nil, err
		}
	}
	for _, m := range []struct {
		holds string
		names []string
		use   func(data map[string]string) ([]string, error)
	}{
		{"the settings of the manager", []string{where.ConfigMap}, func(data map[string]string) (_ []string, err error) {
			if why != "" { // Else they are there already, with what the Deployment says.
				live.Configuration, err = config.AsFile(data)
			}
			return nil, err
		}},
		{"", where.SaturationConfigMaps(), func(data map[string]string) (warnings []string, err error) {
			live.Saturation = data
			_, warnings, err = config.ParseSaturation(data)
			return warnings, err
		}},
		{"", where.ScaleToZeroConfigMaps(), func(data map[string]string) (warnings []string, err error) {
			live.ScaleToZero = data
			_, warnings, err = config.ParseScaleToZero(data)
			return warnings, err
		}},
		{"SLOs", where.ServiceClassConfigMaps(), func(data map[string]string) (warnings []string, err error) {
			live.ServiceClasses, warnings, err = config.ParseServiceClasses(where.ServiceClassConfigMap, data)
			return warnings, err
		}},
		{"prices of accelerators", where.UnitCostConfigMaps(), func(data map[string]string) (warnings []string, err error) {
			live.UnitCosts, warnings, err = config.ParseUnitCosts(data)
			return warnings, err
		}},
	} {
		name, found, err := firstMap(ctx, api, where.PodNamespace, m.names)
		switch {
		case apierrors.IsNotFound(err) && m.holds == "":
			continue
		case apierrors.IsNotFound(err):
			notes = append(notes, fmt.Sprintf("there is no ConfigMap %s, so %s do not count%s", strings.Join(m.names, " or ")+" in namespace "+where.PodNamespace, m.holds, why))
			continue
		case apierrors.IsForbidden(err):
			notes = append(notes, fmt.Sprintf("ConfigMap %s may not be read, so what it holds does not count: ask for the permission to get it", name))
			continue
		case err != nil:
			return notes, fmt.Errorf("reading ConfigMap %s: %w", name, err)
		}
		warnings, err := m.use(found.Data)
		if err != nil {
			return notes, fmt.Errorf("in ConfigMap %s: %w", name, err)
		}
		for _, warning := range warnings {
			notes = append(notes, fmt.Sprintf("ConfigMap %s: %s", name, warning))
		}
	}
	if !where.NamespaceConfig {
		return notes, nil
	}
	more, err := readNamespaces(ctx, api, where.PodNamespace, live)
	return append(notes, more...), err
}

// readNamespaces reads the ConfigMaps of the variants' namespaces, as a manager with
// WVA_NAMESPACE_CONFIG does: in each the first that has an entry counts.
func readNamespaces(ctx context.Context, api client.Reader, home string, live *scenario.Live) (notes []string, err error) {
	live.Namespaces = map[string]scenario.Maps{}
	for _, v := range live.Variants {
		namespace := v.Object.Namespace
		if _, seen := live.Namespaces[namespace]; seen || namespace == home {
			continue
		}
		var own scenario.Maps
		for _, kind := range []struct {
			to    *map[string]string
			names []string
			check func(data map[string]string) ([]string, error)
		}{
			{&own.Saturation, config.LocalSaturationConfigMaps(), func(data map[string]string) ([]string, error) {
				_, warnings, err := config.ParseLocalSaturation(namespace, data)
				return warnings, err
			}},
			{&own.ScaleToZero, config.LocalScaleToZeroConfigMaps(), func(data map[string]string) ([]string, error) {
				_, warnings, err := config.ParseLocalScaleToZero(namespace, data)
				return warnings, err
			}},
		} {
			more, err := readLocal(ctx, api, namespace, kind.names, kind.to, kind.check)
			if notes = append(notes, more...); err != nil {
				return notes, err
			}
		}
		live.Namespaces[namespace] = own
	}
	return notes, nil
}

// readLocal reads one kind of ConfigMaps of a namespace.
func readLocal(ctx context.Context, api client.Reader, namespace string, names []string, to *map[string]string, check func(map[string]string) ([]string, error)) (notes []string, err error) {
	for _, name := range names {
		var found corev1.ConfigMap
		err := api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &found)
		switch {
		case apierrors.IsNotFound(err) || err == nil && len(found.Data) == 0:
			continue
		case apierrors.IsForbidden(err):
			return []string{fmt.Sprintf("ConfigMap %s/%s may not be read, so the settings beside the manager count for that namespace: ask for the permission to get it", namespace, name)}, nil
		case err != nil:
			return nil, fmt.Errorf("reading ConfigMap %s/%s: %w", namespace, name, err)
		}
		warnings, err := check(found.Data)
		if err != nil {
			return nil, fmt.Errorf("in ConfigMap %s/%s: %w", namespace, name, err)
		}
		for _, warning := range warnings {
			notes = append(notes, fmt.Sprintf("ConfigMap %s/%s: %s", namespace, name, warning))
		}
		*to = found.Data
		return notes, nil
	}
	return nil, nil
}

// firstMap is the first of several ConfigMaps that exists, as the manager finds it.
func firstMap(ctx context.Context, api client.Reader, namespace string, names []string) (name types.NamespacedName, found corev1.ConfigMap, err error) {
	for _, n := range names {
		name = types.NamespacedName{Namespace: namespace, Name: n}
		if err = api.Get(ctx, name, &found); !apierrors.IsNotFound(err) {
			return name, found, err
		}
	}
	return name, found, err
}
