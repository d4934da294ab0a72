package installation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/config"
	"llmd.ai/workload-variant-autoscaler/pkg/inventory"
)

// labels are what the Deployment of every manager has.
var labels = client.MatchingLabels{
	"app.kubernetes.io/name":      "workload-variant-autoscaler",
	"app.kubernetes.io/component": "manager",
}

// mostNamed is how many managers an error names.
const mostNamed = 5

// container is the container of a manager's pods that it runs in.
const container = "manager"

// Manager is a manager as it is installed.
type Manager struct {
	Namespace, Name string
	Config          config.Config
	// Notes say what of its settings could not be read.
	Notes []string
	// partly is set where its ConfigMap could not be read, and hidden are the variables of its
	// environment that come from elsewhere; all others may too where one is empty.
	partly bool
	hidden []string
	// changed is when that ConfigMap was changed last.
	changed time.Time
}

// Find is the manager of the cluster; with a namespace the one there, of several the first by name. It
// fails where managers are in several namespaces and none was named: whoever may create a Deployment
// can make one look like a manager, and what it says would count for others. Where none is found, or
// none may be looked for, it is one of the published names without settings, and its Notes say so.
func Find(ctx context.Context, api client.Reader, namespace string) (*Manager, error) {
	var list appsv1.DeploymentList
	err := api.List(ctx, &list, labels, client.InNamespace(namespace))
	where := "in no namespace"
	if namespace != "" {
		where = "not in namespace " + namespace
	}
	switch {
	case apierrors.IsForbidden(err):
		return none(namespace, "the Deployment of the manager may not be looked for, so its settings do not count: ask for the permission to list deployments, or name its namespace with --manager-namespace")
	case err != nil:
		return nil, fmt.Errorf("looking for the manager's Deployment: %w", err)
	case len(list.Items) == 0:
		return none(namespace, "no manager is installed, "+where+", so none of its settings count")
	}
	slices.SortFunc(list.Items, func(a, b appsv1.Deployment) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	if first, last := list.Items[0], list.Items[len(list.Items)-1]; first.Namespace != last.Namespace {
		return nil, several(ctx, api, list.Items)
	}
	m, err := read(ctx, api, &list.Items[0])
	if err == nil && len(list.Items) > 1 {
		m.Notes = append(m.Notes, fmt.Sprintf("%d managers are installed, and the settings of %s/%s count: --manager-namespace names another one", len(list.Items), m.Namespace, m.Name))
		if note := rivals(ctx, api, list.Items); note != "" {
			m.Notes = append(m.Notes, note)
		}
	}
	return m, err
}

// errSeveral is what to do about managers in several namespaces.
var errSeveral = errors.New("name the namespace of yours with --manager-namespace, or for capacity its ConfigMap with --accelerator-names")

// several is the error of managers in several namespaces.
func several(ctx context.Context, api client.Reader, deployments []appsv1.Deployment) error {
	var names []string
	for i := range deployments {
		names = append(names, deployments[i].Namespace+"/"+deployments[i].Name)
	}
	note := rivals(ctx, api, deployments)
	if note != "" {
		note = "; " + note
	}
	return fmt.Errorf("%d Deployments say that they are a manager (%s): %w%s", len(names), strings.Join(names[:min(len(names), mostNamed)], ", "), errSeveral, note)
}

// rivals names the first two managers that handle the same objects, which both would scale;
// empty without such. What cannot be read is no rival.
func rivals(ctx context.Context, api client.Reader, deployments []appsv1.Deployment) string {
	var before []*Manager
	for i := range deployments {
		d := &deployments[i]
		if ptr.Deref(d.Spec.Replicas, 1) == 0 {
			continue
		}
		m, err := read(ctx, api, d)
		if err != nil {
			continue
		}
		for _, other := range before {
			a, b := m.Config.Static, other.Config.Static
			if a.ControllerInstance == b.ControllerInstance && (a.WatchNamespace == "" || b.WatchNamespace == "" || a.WatchNamespace == b.WatchNamespace) {
				return fmt.Sprintf("managers %s/%s and %s/%s handle the same objects, and both would scale them: give one a controller instance (wva.controllerInstance), or uninstall it",
					other.Namespace, other.Name, m.Namespace, m.Name)
			}
		}
		before = append(before, m)
	}
	return ""
}

// none is a manager that says nothing. Its names are the published ones.
func none(namespace, note string) (*Manager, error) {
	m := &Manager{Notes: []string{note}}
	flags := map[string]string{}
	if namespace != "" {
		flags["pod-namespace"] = namespace
	}
	return m, m.load(config.Sources{Flags: flags}, true)
}

// read works out the settings of a Deployment.
func read(ctx context.Context, api client.Reader, d *appsv1.Deployment) (*Manager, error) {
	m := &Manager{Namespace: d.Namespace, Name: d.Name}
	from, hidden := sources(d)
	m.hidden = hidden
	_, name := config.Located(from)
	var settings corev1.ConfigMap
	switch err := api.Get(ctx, client.ObjectKey{Namespace: d.Namespace, Name: name}, &settings); {
	case err == nil:
		from.Map, from.MapName = settings.Data, d.Namespace+"/"+name
		m.changed = changed(&settings)
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
		m.partly = true
		m.Notes = append(m.Notes, fmt.Sprintf("ConfigMap %s/%s could not be read, so the manager's settings in it do not count: %v", d.Namespace, name, err))
	default:
		return nil, fmt.Errorf("reading ConfigMap %s/%s: %w", d.Namespace, name, err)
	}
	return m, m.load(from, from.Map == nil)
}

// load reads the settings. What a manager could not start without, an address of Prometheus,
// may be unknown.
func (m *Manager) load(from config.Sources, incomplete bool) error {
	loaded, err := config.Load(from)
	if err != nil && incomplete {
		from.Flags["wva-metrics-source"] = string(config.SourcePods)
		loaded, err = config.Load(from)
	}
	if err != nil {
		return fmt.Errorf("the settings of manager %s/%s: %w", m.Namespace, m.Name, err)
	}
	m.Config = loaded
	return nil
}

// sources are what a Deployment gives its manager. Hidden are the variables of its environment
// that come from a ConfigMap or a Secret; an empty one stands for whatever such an object holds.
func sources(d *appsv1.Deployment) (from config.Sources, hidden []string) {
	from.Flags = map[string]string{}
	environment := map[string]string{}
	for i := range d.Spec.Template.Spec.Containers {
		c := &d.Spec.Template.Spec.Containers[i]
		if c.Name != container && len(d.Spec.Template.Spec.Containers) > 1 {
			continue
		}
		for _, e := range c.Env {
			switch {
			case e.ValueFrom == nil:
				environment[e.Name] = e.Value
			case e.ValueFrom.FieldRef != nil && e.ValueFrom.FieldRef.FieldPath == "metadata.namespace":
				environment[e.Name] = d.Namespace
			default:
				hidden = append(hidden, e.Name)
			}
		}
		if len(c.EnvFrom) > 0 {
			hidden = append(hidden, "")
		}
		for _, argument := range slices.Concat(c.Command, c.Args) {
			for variable, value := range environment {
				argument = strings.ReplaceAll(argument, "$("+variable+")", value)
			}
			if name, value, ok := strings.Cut(strings.TrimLeft(argument, "-"), "="); ok && strings.HasPrefix(argument, "-") {
				from.Flags[name] = value
			} else if strings.HasPrefix(argument, "--") {
				from.Flags[name] = "true"
			}
		}
	}
	from.Lookup = func(name string) (string, bool) {
		value, ok := environment[name]
		return value, ok
	}
	return from, hidden
}

// AcceleratorNames is the ConfigMap in which the manager finds names of accelerators.
func (m *Manager) AcceleratorNames() types.NamespacedName {
	return types.NamespacedName{Namespace: cmp.Or(m.Namespace, m.Config.PodNamespace), Name: m.Config.AcceleratorNamesConfigMap}
}

// Names are the names of accelerators of the cluster, with notes about what of them does
// not count. The ConfigMap may be absent.
func (m *Manager) Names(ctx context.Context, api client.Reader) (*inventory.Names, []string) {
	names := &inventory.Names{}
	at := m.AcceleratorNames()
	var data corev1.ConfigMap
	err := api.Get(ctx, at, &data)
	if apierrors.IsNotFound(err) {
		return names, nil
	}
	var overrides inventory.Overrides
	if err == nil {
		overrides, err = inventory.ParseOverrides(data.Data)
	}
	if err != nil {
		return names, []string{fmt.Sprintf("the names of accelerators in ConfigMap %s do not count: %v", at, err)}
	}
	names.SetOverrides(overrides)
	return names, nil
}
