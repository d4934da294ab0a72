package controller

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/config"
	"llmd.ai/workload-variant-autoscaler/pkg/inventory"
)

// configFile is the key of the ConfigMap that holds the configuration file.
const configFile = "config.yaml"

// The reasons of events on the ConfigMaps.
const (
	eventImmutable = "ImmutableConfigChangeRejected"
	eventInvalid   = "InvalidConfiguration"
)

// Settings are the dynamic settings in force. They are safe for concurrent use.
type Settings struct {
	current atomic.Pointer[config.Dynamic]
}

// newSettings begins with the given settings.
func newSettings(d config.Dynamic) *Settings {
	s := &Settings{}
	s.current.Store(&d)
	return s
}

// Current are the settings in force. They must not be changed.
func (s *Settings) Current() *config.Dynamic { return s.current.Load() }

// follower keeps the settings and the names of accelerators in step with the
// ConfigMaps. It runs on every replica of the manager, so that a new leader has them.
type follower struct {
	reader   client.Reader
	recorder events.EventRecorder
	settings *Settings
	names    *inventory.Names
	trigger  *trigger
	sources  config.Sources
	// ready is closed once the ConfigMaps were read for the first time.
	ready chan struct{}

	lock   sync.Mutex
	config config.Config
	// rejected is the resource version of the ConfigMaps that were refused, by name,
	// so that each is told of once.
	rejected map[string]string
	// overrides are the names in force that a ConfigMap gives.
	overrides inventory.Overrides
}

// followed are the names of the ConfigMaps.
func (f *follower) followed() []string {
	return []string{
		f.config.ConfigMap, f.config.SaturationConfigMap, f.config.AcceleratorNamesConfigMap,
		f.config.ServiceClassConfigMap, f.config.UnitCostConfigMap, f.config.ScaleToZeroConfigMap,
	}
}

// Start reads the ConfigMaps once the cache has them.
func (f *follower) Start(ctx context.Context) error {
	for _, name := range f.followed() {
		if err := f.follow(ctx, name); err != nil {
			return err
		}
	}
	close(f.ready)
	<-ctx.Done()
	return nil
}

// NeedLeaderElection lets every replica follow.
func (f *follower) NeedLeaderElection() bool { return false }

// Reconcile follows one ConfigMap.
func (f *follower) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	return ctrl.Result{}, f.follow(ctx, request.Name)
}

// follow puts a ConfigMap into force. One that cannot be used changes nothing: the
// last good settings stay, and an event on it says why.
func (f *follower) follow(ctx context.Context, name string) error {
	object := &corev1.ConfigMap{}
	err := f.reader.Get(ctx, client.ObjectKey{Namespace: f.config.PodNamespace, Name: name}, object)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading ConfigMap %s/%s: %w", f.config.PodNamespace, name, err)
	}
	if err != nil {
		object = nil
	}
	f.lock.Lock()
	defer f.lock.Unlock()
	if err := f.use(ctx, name, object); err != nil {
		klog.FromContext(ctx).Error(err, "The ConfigMap is not used; the last good settings stay", "configMap", name)
		f.reject(object, eventInvalid, err.Error())
		return nil
	}
	if next := f.config.Dynamic; !reflect.DeepEqual(&next, f.settings.Current()) {
		f.settings.current.Store(&next)
		f.trigger.poke(soon)
		klog.FromContext(ctx).Info("Settings changed", "configMap", name)
	}
	return nil
}

// use puts the data of a ConfigMap, which is nil where there is none, into the
// configuration. On an error nothing of it was.
func (f *follower) use(ctx context.Context, name string, object *corev1.ConfigMap) error {
	var data map[string]string
	if object != nil {
		data = object.Data
	}
	var warnings []string
	var err error
	switch c := &f.config; name {
	case c.SaturationConfigMap:
		warnings, err = take(&c.Saturation, config.ParseSaturation, data)
	case c.ServiceClassConfigMap:
		warnings, err = take(&c.ServiceClasses, f.parseServiceClasses, data)
	case c.UnitCostConfigMap:
		warnings, err = take(&c.UnitCosts, config.ParseUnitCosts, data)
	case c.ScaleToZeroConfigMap:
		warnings, err = take(&c.ScaleToZero, config.ParseScaleToZero, data)
	case c.AcceleratorNamesConfigMap:
		err = f.followNames(ctx, data)
	default:
		if data[configFile] != "" {
			err = f.followFile(object)
		}
	}
	for _, w := range warnings {
		klog.FromContext(ctx).Info("The ConfigMap holds what has no effect or looks like a mistake", "configMap", name, "warning", w)
	}
	return err
}

// take puts what a ConfigMap says in the place of what was in force. Without a
// ConfigMap that is what holds by default.
func take[T any](inForce *T, parse func(map[string]string) (T, []string, error), data map[string]string) ([]string, error) {
	parsed, warnings, err := parse(data)
	if err == nil {
		*inForce = parsed
	}
	return warnings, err
}

func (f *follower) parseServiceClasses(data map[string]string) (config.ServiceClasses, []string, error) {
	return config.ParseServiceClasses(f.config.ServiceClassConfigMap, data)
}

// followNames puts the names of accelerators into force; without a ConfigMap those
// that are built in.
func (f *follower) followNames(ctx context.Context, data map[string]string) error {
	overrides, err := inventory.ParseOverrides(data)
	if err != nil || maps.Equal(overrides, f.overrides) {
		return err
	}
	f.overrides = overrides
	f.names.SetOverrides(overrides)
	f.trigger.poke(soon)
	klog.FromContext(ctx).Info("Names of accelerators changed", "entries", len(overrides))
	return nil
}

func (f *follower) followFile(object *corev1.ConfigMap) error {
	next, changes, err := f.config.Update(f.sources, []byte(object.Data[configFile]))
	if err != nil {
		return err
	}
	f.config = next
	if len(changes) > 0 {
		f.reject(object, eventImmutable, fmt.Sprintf("needs a restart of the manager: %v", changes))
	}
	return nil
}

// reject tells on the ConfigMap what of it is not in force.
func (f *follower) reject(object *corev1.ConfigMap, reason, note string) {
	if object == nil || f.rejected[object.Name] == object.ResourceVersion {
		return
	}
	f.rejected[object.Name] = object.ResourceVersion
	f.recorder.Eventf(object, nil, corev1.EventTypeWarning, reason, "Configure", "%s", bounded(note))
}
