package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/config"
	"llmd.ai/workload-variant-autoscaler/pkg/config/review"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/inventory"
)

// liveTimeout bounds the reading of targets from the API server.
const liveTimeout = 5 * time.Second

// target is a scale target as it was found.
type target struct {
	ref autoscalingv1.CrossVersionObjectReference
	key string
	// child is the key of the Deployment or StatefulSet below the target that owns its
	// pods; empty where the target itself does, or where there is none.
	child string
	// above is the key of the object that made the target; empty where none did.
	above string
	state decision.TargetState
	// fact says in words why the state is not TargetFound.
	fact decision.Fact
	// scale is nil unless the target exists.
	scale *autoscalingv1.Scale
	// template is nil when it is not known.
	template       *corev1.PodTemplateSpec
	podsPerReplica int
	// owners are the controllers of the target's pods; selector finds the pods of a
	// kind whose owners are not known.
	owners   []types.UID
	selector labels.Selector
	// selectorProblem says why the target's pods cannot be found; empty means that they can.
	selectorProblem string
	// costed is set when the controller of the pods heeds their deletion cost.
	costed bool
	// rollout is that of a Deployment or LeaderWorkerSet.
	rollout inventory.Rollout
	// told is what the decision is told of the target itself: Rolling, for any kind of update
	// that replaces pods, Paused, Ordered, Settling, Numbered, First and Writer.
	told decision.Variant
	// revision tells the pods of the present template.
	revision inventory.Revision
	// ends is set while the target is being deleted: its pods go, and no others come.
	ends bool
	// unread is set while nobody could read the target, which may pass.
	unread bool
	// follower is what follows our metric, and allows the fewest replicas; nil where nothing does
	// that is known.
	follower *autoscalingv2.HorizontalPodAutoscaler
	// lent is set when another object on the same target counts its pods.
	lent bool
}

func (t *target) String() string { return fmt.Sprintf("%s %s", t.ref.Kind, t.ref.Name) }

// refuse takes the target out of the decision and says why.
func (t *target) refuse(state decision.TargetState, reason decision.Reason, format string, args ...any) {
	t.state, t.fact = state, decision.Fact{Reason: reason, Detail: decision.Words(fmt.Sprintf(format, args...))}
}

// tellDeleted says of a target that is not there, or not for long, whether it was before: the
// object has found it, as it is now, or has told of its deletion.
func (v *variant) tellDeleted(object *v1alpha1.VariantAutoscaling) {
	t := &v.target
	resolved := apimeta.FindStatusCondition(object.Status.Conditions, v1alpha1.ConditionTargetResolved)
	if resolved == nil || t.fact.Reason != decision.ReasonTargetMissing {
		return
	}
	name, what := fmt.Sprintf("Target %s '%s' ", strings.ToLower(t.ref.Kind), t.ref.Name), "no longer exists"
	if t.ends {
		what = "is being deleted"
	}
	found := resolved.Status == metav1.ConditionTrue && resolved.ObservedGeneration == object.Generation
	if found || strings.HasPrefix(resolved.Message, name) {
		t.fact.Detail, v.Deleted = decision.Words(name+what), true
	}
}

// targetFinder finds scale targets and their pods.
type targetFinder struct {
	reader client.Reader
	scaler Scaler
	access Access
	// overlay are our own writes, for as long as the cache lags behind them.
	overlay *overlay
	// last are the live reads of before, and looks how often all were tried.
	last  map[decision.Key]liveRead
	looks int
}

// find fills in the targets of all variants.
func (f *targetFinder) find(ctx context.Context, variants []*variant) error {
	var live []*variant
	for _, v := range variants {
		cached, err := f.findCached(ctx, v)
		if err != nil {
			return err
		}
		if !cached {
			live = append(live, v)
		}
	}
	f.findLive(ctx, live)
	for _, v := range live {
		if err := f.findChild(ctx, v); err != nil {
			return err
		}
	}
	for _, v := range variants {
		if v.target.scale == nil {
			v.tellDeleted(f.overlay.variants.over(v.object))
			continue
		}
		if scale := f.overlay.scales.over(v.target.scale); scale != v.target.scale {
			// What the cache knows of the writer is from before our own write.
			v.target.scale, v.target.told.Writer = scale, ""
		}
		if err := f.findConflict(ctx, v); err != nil {
			return err
		}
	}
	return nil
}

// findCached finds a target of a kind that the cache holds; false means that it does
// not hold it.
func (f *targetFinder) findCached(ctx context.Context, v *variant) (bool, error) {
	t := &v.target
	named, err := review.TargetOf(v.object)
	gvk, _ := v.object.Spec.ScaleTargetRef.GroupVersionKind()
	t.ref = autoscalingv1.CrossVersionObjectReference{APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Name: named.Name}
	t.key = targetKey(named.Kind, named.Name)
	if err != nil {
		v.invalid(err)
		t.refuse(decision.TargetMissing, v1alpha1.ReasonTargetNotScalable, "%v", err)
		return true, nil
	}
	read, ok := map[schema.GroupKind]func(context.Context, client.ObjectKey, *target) error{
		appsKind("Deployment"):          f.deployment,
		appsKind("StatefulSet"):         f.statefulSet,
		appsKind("ReplicaSet"):          f.replicaSet,
		kindLeaderWorkerSet.GroupKind(): f.leaderWorkerSet,
	}[named.Kind]
	if !ok || named.Kind == kindLeaderWorkerSet.GroupKind() && !f.access.LeaderWorkerSets {
		return false, nil
	}
	err = read(ctx, client.ObjectKey{Namespace: v.key.Namespace, Name: named.Name}, t)
	switch {
	case err == nil && t.ends:
		t.refuse(decision.TargetMissing, decision.ReasonTargetMissing, "%s in namespace %s is being deleted", t, v.key.Namespace)
		t.scale = nil
	case apierrors.IsNotFound(err):
		t.refuse(decision.TargetMissing, decision.ReasonTargetMissing, "%s does not exist in namespace %s", t, v.key.Namespace)
	case err != nil && ctx.Err() != nil:
		return true, fmt.Errorf("reading %s of VariantAutoscaling %s/%s: %w", t, v.key.Namespace, v.key.Name, err)
	case err != nil:
		// One target that cannot be understood must not stop the round for all others.
		t.refuse(decision.TargetMissing, v1alpha1.ReasonTargetNotScalable, "%s cannot be read: %v", t, config.StableError(err))
	}
	return true, nil
}

// liveRead is what is known of a target that is read from the API server.
type liveRead struct {
	ref autoscalingv1.CrossVersionObjectReference
	// scale was read last; nil where none was yet.
	scale *autoscalingv1.Scale
	// tried is the look at the cluster in which it was asked for last; 0 means never.
	tried int
}

// findLive reads the targets of all other kinds from the API server, in turns between their
// namespaces, and within one those first that waited longest: where it is too slow for all, it is
// neither always the same ones that nobody reads, nor those of whoever has fewer.
func (f *targetFinder) findLive(ctx context.Context, variants []*variant) {
	ctx, cancel := context.WithTimeout(ctx, liveTimeout)
	defer cancel()
	f.looks++
	slices.SortStableFunc(variants, func(a, b *variant) int { return cmp.Compare(f.last[a.key].tried, f.last[b.key].tried) })
	inTurns(variants, func(v *variant) string { return v.key.Namespace })
	errs, last := make([]error, len(variants)), make([]liveRead, len(variants))
	sideBySide(len(variants), func(i int) {
		v := variants[i]
		if was := f.last[v.key]; was.ref == v.target.ref {
			last[i] = was
		}
		if ctx.Err() == nil {
			last[i].tried = f.looks
		}
		v.target.scale, errs[i] = f.scaler.Read(ctx, v.key.Namespace, v.target.ref)
	})
	f.last = make(map[decision.Key]liveRead, len(variants))
	for i, v := range variants {
		v.explainLive(errs[i], last[i].scale)
		if v.target.scale != nil {
			v.target.bySelector(v.target.scale.Status.Selector)
		}
		f.last[v.key] = liveRead{v.target.ref, v.target.scale, last[i].tried}
	}
}

// inTurns orders a list so that the first of each namespace comes before the second of any: whoever has many
// objects does not keep others waiting.
func inTurns[T comparable](list []T, namespace func(T) string) {
	turn, turns := map[string]int{}, make(map[T]int, len(list))
	for _, one := range list {
		in := namespace(one)
		turns[one] = turn[in]
		turn[in]++
	}
	slices.SortStableFunc(list, func(a, b T) int { return cmp.Compare(turns[a], turns[b]) })
}

// explainLive says what an error of a live read means. One that may pass leaves what
// was read last, which is safe: it is written under its own version only.
func (v *variant) explainLive(err error, last *autoscalingv1.Scale) {
	t := &v.target
	if err == nil {
		return
	}
	t.scale = nil
	var unscalable interface{ NotScalable() bool }
	switch {
	case errors.As(err, &unscalable):
		t.refuse(decision.TargetMissing, v1alpha1.ReasonTargetNotScalable, "%v", err)
	case apierrors.IsNotFound(err):
		t.refuse(decision.TargetMissing, decision.ReasonTargetMissing, "%v", err)
	case apierrors.IsForbidden(err):
		t.refuse(decision.TargetForbidden, decision.ReasonTargetForbidden, "%v", err)
	case last == nil:
		t.refuse(decision.TargetForbidden, v1alpha1.ReasonOptimizationFailed, "%s could not be read yet, so its replicas are held: %v", t, err)
		t.unread = true
	default:
		t.scale = last
	}
}

// findConflict looks for others who decide the replicas of a target that exists:
// another object of ours, whatever its mode, and a HorizontalPodAutoscaler or a
// ScaledObject unless it is meant to act on our metric.
func (f *targetFinder) findConflict(ctx context.Context, v *variant) error {
	err := f.findConflictOn(ctx, v, v.target.key)
	for _, key := range []string{v.target.child, v.target.above} {
		if err == nil && key != "" && v.target.state == decision.TargetFound {
			err = f.findConflictOn(ctx, v, key)
		}
	}
	return err
}

// findConflictOn looks for others on one object: the target, the workload below it, or what
// made the target and sets its replicas.
func (f *targetFinder) findConflictOn(ctx context.Context, v *variant, key string) error {
	variants, err := variantsOn(ctx, f.reader, v.key.Namespace, key)
	if err != nil {
		return err
	}
	var others []string
	for _, other := range variants {
		if other.Name != v.key.Name {
			others = append(others, other.Name)
			// The pods of a shared target serve once: the object that was there first
			// counts them.
			v.target.lent = v.target.lent || v1alpha1.Older(other, v.object)
		}
	}
	if len(others) > 0 {
		slices.Sort(others)
		state := decision.TargetConflict
		if v.target.lent {
			state = decision.TargetShared
		}
		v.target.refuse(state, v1alpha1.ReasonTargetShared, "%s", review.SharedTarget(others, &v.target))
		return nil
	}
	switch v.object.Spec.Actuation {
	case v1alpha1.ActuationMetric:
		return f.findFollower(ctx, v, key)
	case v1alpha1.ActuationOff:
		return nil
	}
	found, err := autoscalersOn(ctx, f.reader, f.access, v.key.Namespace, key)
	if err != nil {
		return err
	}
	if len(found) > 0 {
		var names []string
		for _, a := range found {
			names = append(names, a.String())
		}
		slices.Sort(names)
		v.target.refuse(decision.TargetConflict, v1alpha1.ReasonAutoscalerOnTarget, "%s", review.AutoscalerOnTarget(names, &v.target))
	}
	return nil
}

// findFollower finds the HorizontalPodAutoscaler that allows the fewest replicas: what is shown
// beyond them nobody makes, and other variants can carry the load. KEDA has one for each of its
// ScaledObjects.
func (f *targetFinder) findFollower(ctx context.Context, v *variant, key string) error {
	var autoscalers autoscalingv2.HorizontalPodAutoscalerList
	if err := listOn(ctx, f.reader, &autoscalers, v.key.Namespace, key); err != nil {
		return err
	}
	for _, a := range pointers(autoscalers.Items) {
		if narrowest := v.target.follower; narrowest == nil || a.Spec.MaxReplicas < narrowest.Spec.MaxReplicas {
			v.target.follower = a
		}
	}
	return nil
}

// autoscalersOn are the autoscalers on a target; the caller knows which. KEDA's own
// HorizontalPodAutoscaler is named after its ScaledObject, which is what a user knows.
func autoscalersOn(ctx context.Context, reader client.Reader, access Access, namespace, key string) ([]review.Autoscaler, error) {
	var found []review.Autoscaler
	if access.ScaledObjects {
		objects := &unstructured.UnstructuredList{}
		objects.SetGroupVersionKind(kindScaledObject.GroupVersion().WithKind(kindScaledObject.Kind + "List"))
		if err := listOn(ctx, reader, objects, namespace, key); err != nil {
			return nil, err
		}
		for i := range objects.Items {
			found = append(found, review.Autoscaler{Kind: kindScaledObject.Kind, Name: objects.Items[i].GetName()})
		}
	}
	var autoscalers autoscalingv2.HorizontalPodAutoscalerList
	if err := listOn(ctx, reader, &autoscalers, namespace, key); err != nil {
		return nil, err
	}
	for i := range autoscalers.Items {
		if name := autoscalers.Items[i].Name; len(found) == 0 || !strings.HasPrefix(name, "keda-hpa-") {
			found = append(found, review.Autoscaler{Kind: "HorizontalPodAutoscaler", Name: name, Owner: makerOf(&autoscalers.Items[i])})
		}
	}
	return found, nil
}

// makerOf is the kind and name of what controls an object; empty where nothing does.
func makerOf(o client.Object) string {
	owner := metav1.GetControllerOf(o)
	if owner == nil {
		return ""
	}
	return owner.Kind + " " + owner.Name
}

// variantsOn are our objects on a target, by its targetKey, whatever instance handles them.
func variantsOn(ctx context.Context, cached client.Reader, namespace, key string) ([]*v1alpha1.VariantAutoscaling, error) {
	var list v1alpha1.VariantAutoscalingList
	err := listOn(ctx, cached, &list, namespace, key)
	return pointers(list.Items), err
}

// listOn lists the objects of a kind on a target without a copy: nobody may change them.
func listOn(ctx context.Context, cached client.Reader, list client.ObjectList, namespace, key string) error {
	err := cached.List(ctx, list, client.InNamespace(namespace), client.MatchingFields{indexTarget: key}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return fmt.Errorf("listing %T on %s in namespace %s: %w", list, key, namespace, err)
	}
	return nil
}
