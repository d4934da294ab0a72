package installation

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
)

// Mode is how a manager sizes. The empty Mode is not known.
type Mode string

// The modes.
const (
	// Hybrid sizes for the SLO too.
	Hybrid Mode = "hybrid"
	// CapacityOnly sizes by saturation alone.
	CapacityOnly Mode = "capacity-only"
)

// modeSetting is the setting that chooses the mode.
const modeSetting = "EXPERIMENTAL_PROACTIVE_MODEL"

// Mode is that which the settings of the manager choose. It is not known where a place that
// may have the setting, and comes before the one that was read, could not be read.
func (m *Manager) Mode() Mode {
	switch {
	case m.Name == "", slices.Contains(m.hidden, modeSetting), slices.Contains(m.hidden, ""):
		return ""
	case m.partly && !m.Config.Given(modeSetting):
		return ""
	case m.Config.Hybrid:
		return Hybrid
	}
	return CapacityOnly
}

// handles reports whether the manager decides about an object.
func (m *Manager) handles(object *v1alpha1.VariantAutoscaling) bool {
	static := &m.Config.Static
	return static.ControllerInstance == object.Labels[v1alpha1.LabelControllerInstance] &&
		(static.WatchNamespace == "" || static.WatchNamespace == object.Namespace)
}

// Modes are the modes of the managers of a cluster. The zero Modes knows none.
type Modes struct {
	managers []*Manager
	// unread is set where the settings of a manager could not be read: it may handle any object.
	unread bool
}

// FindModes finds the modes of the managers of the cluster; with a namespace of those there. Its
// notes say why modes are not known. An unknown mode is no reason to fail.
func FindModes(ctx context.Context, api client.Reader, namespace string) (modes *Modes, notes []string) {
	modes = &Modes{}
	var list appsv1.DeploymentList
	if err := api.List(ctx, &list, labels, client.InNamespace(namespace)); err != nil {
		return modes, []string{fmt.Sprintf("the Deployment of the manager cannot be looked for: %v", err)}
	}
	for i := range list.Items {
		d := &list.Items[i]
		if ptr.Deref(d.Spec.Replicas, 1) == 0 {
			continue
		}
		m, err := read(ctx, api, d)
		switch {
		case err != nil:
			modes.unread = true
			notes = append(notes, err.Error())
			continue
		case m.Mode() == "" && len(m.Notes) > 0:
			notes = append(notes, strings.Join(m.Notes, "; "))
		case m.Mode() == "":
			notes = append(notes, fmt.Sprintf("the environment of manager %s/%s comes from a ConfigMap or a Secret, which is not read", m.Namespace, m.Name))
		}
		modes.managers = append(modes.managers, m)
	}
	if len(list.Items) == 0 {
		where := "in any namespace"
		if namespace != "" {
			where = "in namespace " + namespace
		}
		notes = append(notes, "no Deployment of a manager was found "+where)
	}
	return modes, notes
}

// Of is the mode in which an object is decided about: that which its last decision shows, else
// that of the managers that handle it. It is not known where they differ.
func (m *Modes) Of(object *v1alpha1.VariantAutoscaling) Mode {
	// Only hybrid mode gives these reasons.
	for _, c := range object.Status.Conditions {
		if c.Type == v1alpha1.ConditionOptimizationReady && (c.Reason == v1alpha1.ReasonOptimizationSucceeded || c.Reason == v1alpha1.ReasonSaturationSafetyOverride) {
			return Hybrid
		}
	}
	if m.unread {
		return ""
	}
	var found Mode
	for i, one := range slices.DeleteFunc(slices.Clone(m.managers), func(one *Manager) bool { return !one.handles(object) }) {
		if i > 0 && one.Mode() != found {
			return ""
		}
		found = one.Mode()
	}
	return found
}
