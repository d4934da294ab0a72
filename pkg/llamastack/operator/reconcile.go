package operator

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/v1alpha2"
)

// Reconcile makes the children of one object what it asks for, and its status what they
// are.
func (o *operator) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	if o.WatchNamespace != "" && request.Namespace != o.WatchNamespace {
		return ctrl.Result{}, nil // a server beside the settings, with a ConfigMap like them
	}
	object := &v1alpha2.LlamaStackDistribution{}
	if err := o.cached.Get(ctx, request.NamespacedName, object); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if object.DeletionTimestamp != nil {
		return ctrl.Result{}, nil // the children go with it
	}
	object = object.DeepCopy()
	before := object.Status.DeepCopy()
	result, err := o.run(ctx, object)
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return ctrl.Result{}, nil // the object goes too
	}
	if err := o.writeStatus(ctx, object, before); err != nil {
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			return ctrl.Result{RequeueAfter: soon}, nil // it changed meanwhile, which asks for another turn
		}
		return ctrl.Result{}, err
	}
	return result, err
}

// run is one turn, all but writing the status.
func (o *operator) run(ctx context.Context, object *v1alpha2.LlamaStackDistribution) (ctrl.Result, error) {
	s := &status{object: object, clock: o.Clock, recorder: o.recorder}
	plan, err := o.gather(ctx, object)
	if passes(err) {
		return ctrl.Result{}, err
	}
	s.gathered(plan, o.Version, err)
	if err != nil {
		return ctrl.Result{}, o.count(ctx, s, err)
	}
	if plan.Rolling, err = o.rolling(ctx, object); err != nil {
		return ctrl.Result{}, err
	}
	changed, err := o.apply(ctx, plan)
	if err == nil {
		err = o.revoke(ctx, plan)
	}
	if passes(err) {
		return ctrl.Result{}, err
	}
	s.applied(plan, changed, err)
	if err != nil {
		return ctrl.Result{}, o.count(ctx, s, err)
	}
	deployment, err := o.observe(ctx, s, changed)
	if err != nil {
		return ctrl.Result{}, err
	}
	if err := o.sweep(ctx, plan, deployment); err != nil {
		return ctrl.Result{}, err
	}
	// What changes goes first: a look at a server that does not answer takes seconds.
	return ctrl.Result{RequeueAfter: s.next(), Priority: ptr.To(handler.LowPriority)}, nil
}

// passes says whether an error is about the moment and not about the object: it was worked
// on with what had just changed, or the API server has much to do. The next turn comes soon,
// and no status says that the server failed.
func passes(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsTooManyRequests(err) || apierrors.IsServerTimeout(err)
}

// count puts the pods into the status of an object that cannot be run, for the reason that
// it returns: they run on, and somebody may scale or lose them meanwhile.
func (o *operator) count(ctx context.Context, s *status, why error) error {
	deployment, err := deploymentOf(ctx, o.cached, s.object)
	if err == nil {
		s.counted(deployment)
	}
	return errors.Join(why, err)
}

// deploymentOf is the object's Deployment, nil where it has none.
func deploymentOf(ctx context.Context, from client.Reader, object *v1alpha2.LlamaStackDistribution) (*appsv1.Deployment, error) {
	found := &appsv1.Deployment{}
	if err := from.Get(ctx, client.ObjectKeyFromObject(object), found); apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	if !metav1.IsControlledBy(found, object) {
		return nil, nil // somebody else's
	}
	return found, nil
}

func (o *operator) writeStatus(ctx context.Context, object *v1alpha2.LlamaStackDistribution, before *v1alpha2.LlamaStackDistributionStatus) error {
	if apiequality.Semantic.DeepEqual(before, &object.Status) {
		return nil
	}
	if err := o.api.Status().Update(ctx, object); err != nil {
		return fmt.Errorf("writing the status of LlamaStackDistribution %s/%s: %w", object.Namespace, object.Name, err)
	}
	return nil
}

// observe puts into the status what became of the children. The cache may not have a
// Deployment that was written a moment ago, and the one before it was ready.
func (o *operator) observe(ctx context.Context, s *status, written bool) (*appsv1.Deployment, error) {
	reader := o.cached
	if written {
		reader = o.api
	}
	deployment, err := deploymentOf(ctx, reader, s.object)
	if err != nil {
		return nil, err
	}
	s.deployed(deployment)
	if err := o.observeVolume(ctx, s); err != nil {
		return deployment, err
	}
	if err := o.observeRoute(ctx, s); err != nil {
		return deployment, err
	}
	if s.object.Status.Phase == v1alpha2.PhaseReady && s.object.Status.AvailableReplicas > 0 {
		s.answered(o.Server.Look(ctx, s.object.Status.ServiceURL))
	} else {
		s.silent()
	}
	return deployment, nil
}

func (o *operator) observeVolume(ctx context.Context, s *status) error {
	if s.object.Spec.Workload == nil || s.object.Spec.Workload.Storage == nil {
		s.withoutVolume()
		return nil
	}
	claim := &corev1.PersistentVolumeClaim{}
	err := o.cached.Get(ctx, client.ObjectKey{Namespace: s.object.Namespace, Name: s.object.Name + "-pvc"}, claim)
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	s.volume(claim, s.object.Spec.Workload.Storage.Size)
	return nil
}

// joined has the errors in one, in their order.
func joined(errs []error) error { return errors.Join(errs...) }
