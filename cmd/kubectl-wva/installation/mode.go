package installation

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
)

// Mode is how a manager sizes. The empty Mode is not known.
type Mode string

// The modes.
const (
	// Hybrid sizes each model that has an SLO for it.
	Hybrid Mode = "hybrid"
	// CapacityOnly sizes by saturation alone.
	CapacityOnly Mode = "capacity-only"
)

// modeSetting is the setting that chooses the mode.
const modeSetting = "EXPERIMENTAL_PROACTIVE_MODEL"

// instanceSetting is the setting that names the controller instance of a manager.
const instanceSetting = "CONTROLLER_INSTANCE"

// modeOf is the mode in which a manager runs, as its settings say, or why it is not known. A place
// that has the setting may not be readable, and the manager reads it at its start alone.
func modeOf(ctx context.Context, api client.Reader, m *Manager, d *appsv1.Deployment) (mode Mode, why string) {
	switch {
	case slices.Contains(m.hidden, modeSetting), slices.Contains(m.hidden, "") && !m.Config.Fixed(modeSetting):
		return "", fmt.Sprintf("the environment of manager %s/%s comes from a ConfigMap or a Secret, which is not read", m.Namespace, m.Name)
	case m.Config.Fixed(modeSetting):
	case m.partly:
		return "", strings.Join(m.Notes, "; ")
	default:
		if why := changedSince(ctx, api, m, d); why != "" {
			return "", why
		}
	}
	if m.Config.Hybrid {
		return Hybrid, ""
	}
	return CapacityOnly, ""
}

// changedSince says why the settings that were read may not be those with which the pods of a
// manager run; empty where they are.
func changedSince(ctx context.Context, api client.Reader, m *Manager, d *appsv1.Deployment) (why string) {
	selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
	if err != nil {
		return fmt.Sprintf("the pods of manager %s/%s cannot be found: %v", m.Namespace, m.Name, err)
	}
	var pods corev1.PodList
	if err := api.List(ctx, &pods, client.InNamespace(d.Namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return fmt.Sprintf("the pods of manager %s/%s cannot be looked at, and it may have started before its settings were changed: %v", m.Namespace, m.Name, err)
	}
	running := 0
	for i := range pods.Items {
		began := started(&pods.Items[i])
		switch {
		case began.IsZero():
			continue
		case began.Before(m.changed):
			return fmt.Sprintf("the ConfigMap of manager %[1]s/%[2]s was changed after the manager started, which reads the mode when it starts: `kubectl rollout restart deployment %[2]s -n %[1]s` makes sure", m.Namespace, m.Name)
		}
		running++
	}
	if running == 0 {
		return fmt.Sprintf("no pod of manager %s/%s runs", m.Namespace, m.Name)
	}
	return ""
}

// started is when the manager in a pod began to run; zero where it does not run.
func started(pod *corev1.Pod) time.Time {
	for i := range pod.Status.ContainerStatuses {
		c := &pod.Status.ContainerStatuses[i]
		if (c.Name == container || len(pod.Status.ContainerStatuses) == 1) && c.State.Running != nil {
			return c.State.Running.StartedAt.Time
		}
	}
	return time.Time{}
}

// changed is when a ConfigMap was changed last, as its fields tell.
func changed(data *corev1.ConfigMap) time.Time {
	last := data.CreationTimestamp.Time
	for _, f := range data.ManagedFields {
		if f.Time != nil && f.Time.After(last) {
			last = f.Time.Time
		}
	}
	return last
}

// handles reports whether the manager decides about an object.
func (m *Manager) handles(object *v1alpha1.VariantAutoscaling) bool {
	static := &m.Config.Static
	return static.ControllerInstance == object.Labels[v1alpha1.LabelControllerInstance] &&
		(static.WatchNamespace == "" || static.WatchNamespace == object.Namespace)
}

// moded is a manager with its mode.
type moded struct {
	*Manager
	mode Mode
}

// Modes are the modes of the managers of a cluster. The zero Modes knows none.
type Modes struct {
	managers []moded
	// unread is set where the settings of a manager could not be read: it may handle any object.
	unread bool
	// one is set where only the managers of one namespace were looked for.
	one bool
}

// FindModes finds the modes of the managers of the cluster; with a namespace of those there. Its
// notes say why modes are not known. An unknown mode is no reason to fail.
func FindModes(ctx context.Context, api client.Reader, namespace string) (modes *Modes, notes []string) {
	modes = &Modes{one: namespace != ""}
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
		if err != nil {
			modes.unread = true
			notes = append(notes, err.Error())
			continue
		}
		mode, why := modeOf(ctx, api, m, d)
		if why != "" {
			notes = append(notes, why)
		}
		modes.managers = append(modes.managers, moded{m, mode})
	}
	if note := rivals(ctx, api, list.Items); note != "" {
		notes = append(notes, note)
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

// Orphans says which objects are labelled for a controller instance that no manager is; empty where none
// is, or where not all managers of the cluster are known.
func (m *Modes) Orphans(objects []v1alpha1.VariantAutoscaling) []string {
	hidden := func(one moded) bool {
		elsewhere := one.partly || slices.Contains(one.hidden, "")
		return slices.Contains(one.hidden, instanceSetting) || elsewhere && !one.Config.Fixed(instanceSetting)
	}
	if m.unread || m.one || len(m.managers) == 0 || slices.ContainsFunc(m.managers, hidden) {
		return nil
	}
	of := map[string][]string{}
	for i := range objects {
		object := &objects[i]
		instance := object.Labels[v1alpha1.LabelControllerInstance]
		runs := func(one moded) bool { return one.Config.Static.ControllerInstance == instance }
		if instance != "" && !slices.ContainsFunc(m.managers, runs) {
			of[instance] = append(of[instance], object.Namespace+"/"+object.Name)
		}
	}
	var notes []string
	for _, instance := range slices.Sorted(maps.Keys(of)) {
		const shown = 3
		names := of[instance]
		slices.Sort(names)
		text := strings.Join(names[:min(shown, len(names))], ", ")
		if more := len(names) - shown; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		notes = append(notes, fmt.Sprintf("no manager is controller instance %q, so nobody decides about %s: correct the label %s, or the manager's CONTROLLER_INSTANCE",
			instance, text, v1alpha1.LabelControllerInstance))
	}
	return notes
}

// Of is the mode in which an object is decided about: that which its last decision shows, else
// that of the managers that handle it. It is not known where they differ. A model that is in no
// service class has no SLO, for which hybrid mode could size.
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
	for i, one := range slices.DeleteFunc(slices.Clone(m.managers), func(one moded) bool { return !one.handles(object) }) {
		if i > 0 && one.mode != found {
			return ""
		}
		found = one.mode
	}
	if found == Hybrid && object.Status.ServiceClass == "" && object.Status.Decision != nil {
		return CapacityOnly
	}
	return found
}
