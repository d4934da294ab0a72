package settings

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"llmd.ai/workload-variant-autoscaler/pkg/config"
	"llmd.ai/workload-variant-autoscaler/pkg/inventory"
)

// Settings are the dynamic settings in force. They are safe for concurrent use.
type Settings struct {
	current atomic.Pointer[config.Dynamic]
}

// Of begins with the given settings.
func Of(d config.Dynamic) *Settings {
	s := &Settings{}
	s.current.Store(&d)
	return s
}

// Current are the settings in force. They must not be changed.
func (s *Settings) Current() *config.Dynamic { return s.current.Load() }

// Follower keeps the settings and the names of accelerators in step with the
// ConfigMaps. It runs on every replica of the manager, so that a new leader has them.
type Follower struct {
	// Settings are those in force, and Names the accelerators'.
	Settings *Settings
	Names    *inventory.Names
	// Ready is closed once the ConfigMaps were read for the first time.
	Ready chan struct{}

	reader  client.Reader
	teller  teller
	changed func()
	sources config.Sources

	// verbosity sets how much is logged; it may be nil.
	verbosity func(int) error

	lock   sync.Mutex
	config config.Config
	// entries is how many entries each kind of settings has.
	entries map[string]int
	// overrides are the names in force that a ConfigMap gives.
	overrides inventory.Overrides
}

// NewFollower adds a follower to a manager that was not started yet. What is wrong with a
// ConfigMap is told as component; verbosity sets how much is logged and may be nil, and
// changed is called when something else is in force.
func NewFollower(mgr ctrl.Manager, component string, c config.Config, sources config.Sources, verbosity func(int) error, changed func()) (*Follower, error) {
	f := &Follower{
		Settings: Of(c.Dynamic), Names: &inventory.Names{}, Ready: make(chan struct{}),
		reader: mgr.GetCache(), teller: newTeller(mgr.GetEventRecorder(component), mgr.Elected()), changed: changed, sources: sources,
		verbosity: verbosity, config: c, entries: map[string]int{},
	}
	home, followed := c.PodNamespace, f.followed()
	ours := predicate.NewPredicateFuncs(func(o client.Object) bool {
		return o.GetNamespace() == home && slices.Contains(followed, o.GetName())
	})
	err := ctrl.NewControllerManagedBy(mgr).
		Named("settings").
		For(&corev1.ConfigMap{}, builder.WithPredicates(ours)).
		// Several managers in one process, as in tests, are no mistake.
		WithOptions(controller.Options{NeedLeaderElection: ptr.To(false), SkipNameValidation: ptr.To(true)}).
		Complete(f)
	if err != nil {
		return nil, fmt.Errorf("watching the ConfigMaps: %w", err)
	}
	return f, nil
}

// family is one kind of settings.
type family struct {
	// what is it called in the log.
	what string
	// names are those of its ConfigMap; the first that exists counts.
	names []string
	// use puts the data of the ConfigMap, which is nil where there is none, into the
	// configuration. On an error nothing of it was.
	use func(ctx context.Context, object *corev1.ConfigMap) ([]string, error)
}

// families are all kinds of settings.
func (f *Follower) families() []family {
	c := &f.config
	return []family{
		{"settings", []string{c.ConfigMap}, f.followMain},
		{"saturation", c.SaturationConfigMaps(), taking(&c.Saturation, config.ParseSaturation)},
		{"service class", c.ServiceClassConfigMaps(), taking(&c.ServiceClasses, f.parseServiceClasses)},
		{"accelerator cost", c.UnitCostConfigMaps(), taking(&c.UnitCosts, config.ParseUnitCosts)},
		{kindScaleToZero, c.ScaleToZeroConfigMaps(), taking(&c.ScaleToZero, config.ParseScaleToZero)},
		{"accelerator name", []string{c.AcceleratorNamesConfigMap}, f.followNames},
	}
}

// followed are the names of the ConfigMaps.
func (f *Follower) followed() (names []string) {
	for _, family := range f.families() {
		names = append(names, family.names...)
	}
	return names
}

// Start reads the ConfigMaps once the cache has them. They are read again when this replica
// begins to lead, so that it tells of what is wrong with them.
func (f *Follower) Start(ctx context.Context) error {
	if err := f.followAll(ctx); err != nil {
		return err
	}
	close(f.Ready)
	select {
	case <-ctx.Done():
		return nil
	case <-f.teller.elected:
		return f.followAll(ctx)
	}
}

func (f *Follower) followAll(ctx context.Context) error {
	for _, family := range f.families() {
		if err := f.follow(ctx, family.names[0]); err != nil {
			return err
		}
	}
	return nil
}

// NeedLeaderElection lets every replica follow.
func (f *Follower) NeedLeaderElection() bool { return false }

// Reconcile follows one ConfigMap.
func (f *Follower) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	return ctrl.Result{}, f.follow(ctx, request.Name)
}

// follow puts the settings into force that a ConfigMap holds. One that cannot be used
// changes nothing: the last good settings stay, and an event on it says why. After a start there
// may be none.
func (f *Follower) follow(ctx context.Context, name string) error {
	f.lock.Lock()
	defer f.lock.Unlock()
	for _, family := range f.families() {
		if slices.Contains(family.names, name) {
			if err := f.followFamily(ctx, family); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *Follower) followFamily(ctx context.Context, of family) error {
	object, err := f.teller.first(of.names, func(name string) (*corev1.ConfigMap, error) {
		object := &corev1.ConfigMap{}
		err := f.reader.Get(ctx, client.ObjectKey{Namespace: f.config.PodNamespace, Name: name}, object)
		switch {
		case apierrors.IsNotFound(err):
			return nil, nil //nolint:nilnil // most of them are not there
		case err != nil:
			return nil, fmt.Errorf("reading ConfigMap %s/%s: %w", f.config.PodNamespace, name, err)
		}
		return object, nil
	})
	if err != nil {
		return err
	}
	name, entries := of.names[0], 0
	if object != nil {
		name, entries = object.Name, len(object.Data)
	}
	log := klog.FromContext(ctx).WithValues("configMap", name)
	before := f.config.Warnings
	warnings, err := of.use(klog.NewContext(ctx, log), object)
	warn(log, slices.DeleteFunc(slices.Clone(warnings), func(w string) bool { return slices.Contains(before, w) }))
	if _, understood := f.entries[of.what]; err != nil {
		if f.teller.refuse(log, object, of.what, understood, err) {
			f.config.ScaleToZero = config.NoneSleeps()
			f.putInForce()
		}
		return nil
	}
	if f.putInForce() && of.names[0] != f.config.ConfigMap {
		log.Info("Updated "+of.what+" config", "oldEntries", f.entries[of.what], "newEntries", entries)
	}
	f.entries[of.what] = entries
	return nil
}

// putInForce reports whether that changed anything.
func (f *Follower) putInForce() bool {
	next := f.config.Dynamic
	if reflect.DeepEqual(&next, f.Settings.Current()) {
		return false
	}
	f.Settings.current.Store(&next)
	f.changed()
	return true
}

// taking puts what a ConfigMap says in the place of what was in force. Without a
// ConfigMap that is what holds by default.
func taking[T any](inForce *T, parse func(map[string]string) (T, []string, error)) func(context.Context, *corev1.ConfigMap) ([]string, error) {
	return func(_ context.Context, object *corev1.ConfigMap) ([]string, error) {
		data, err := config.Entries(object)
		if err != nil {
			return nil, err
		}
		parsed, warnings, err := parse(data)
		if err == nil {
			*inForce = parsed
		}
		return warnings, err
	}
}

func (f *Follower) parseServiceClasses(data map[string]string) (config.ServiceClasses, []string, error) {
	return config.ParseServiceClasses(f.config.ServiceClassConfigMap, data)
}

// followNames puts the names of accelerators into force; without a ConfigMap those
// that are built in.
func (f *Follower) followNames(ctx context.Context, object *corev1.ConfigMap) ([]string, error) {
	data, err := config.Entries(object)
	if err != nil {
		return nil, err
	}
	overrides, err := inventory.ParseOverrides(data)
	if err != nil || maps.Equal(overrides, f.overrides) {
		return nil, err
	}
	klog.FromContext(ctx).Info("Updated accelerator name config", "oldEntries", len(f.overrides), "newEntries", len(overrides))
	f.overrides = overrides
	f.Names.SetOverrides(overrides)
	f.changed()
	return nil, nil
}

// followMain puts the main ConfigMap into force. One that is gone changes nothing.
func (f *Follower) followMain(ctx context.Context, object *corev1.ConfigMap) ([]string, error) {
	if object == nil {
		return nil, nil
	}
	data, err := config.Entries(object)
	if err != nil {
		return nil, err
	}
	next, edit, err := f.config.Update(f.sources, data)
	if err != nil {
		return nil, err
	}
	f.config = next
	log := klog.FromContext(ctx)
	for _, c := range edit.Applied {
		tellApplied(log, c)
	}
	if f.verbosity != nil {
		if err := f.verbosity(next.Verbosity); err != nil {
			return nil, err
		}
	}
	if len(edit.Rejected) == 0 || f.teller.knows(object) {
		return next.Warnings, nil
	}
	changes := make([]string, 0, len(edit.Rejected))
	for _, c := range edit.Rejected {
		changes = append(changes, c.String())
	}
	log.Error(nil, "Attempted to change immutable parameters; restart the manager to apply them", "changes", changes)
	f.teller.tell(object, eventImmutable, "needs a restart of the manager, and all else of the edit is in force: "+strings.Join(changes, "; "))
	return next.Warnings, nil
}

// tellApplied logs a setting that changed, in the published words where there are some.
func tellApplied(log klog.Logger, c config.Change) {
	switch {
	case c.Key == "GLOBAL_OPT_INTERVAL":
		log.Info("Updated optimization interval", "old", c.Old, "new", c.New)
	case strings.HasPrefix(c.Key, "PROMETHEUS_METRICS_CACHE_"):
		log.Info("Updated prometheus cache config", "key", c.Key, "old", c.Old, "new", c.New)
	default:
		log.Info("Updated config", "key", c.Key, "old", c.Old, "new", c.New)
	}
}
