package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"

	"llmd.ai/workload-variant-autoscaler/pkg/config"
)

// leaseOf is the lock of a manager with a controller instance. Earlier versions had one
// lease for all instances, of another name: so that no two lead while an upgrade rolls on,
// it is not taken as long as a manager of the revision before runs.
func leaseOf(cluster *rest.Config, c config.Config) (resourcelock.Interface, error) {
	hostname, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("naming this manager in its lease: %w", err)
	}
	bounded := rest.AddUserAgent(cluster, "leader-election")
	// One request that hangs must not end the lead.
	bounded.Timeout = max(time.Second, c.LeaderElection.RenewDeadline/2)
	client, err := kubernetes.NewForConfig(bounded)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	identity := cmp.Or(c.PodName, hostname) + "_" + string(uuid.NewUUID())
	events := record.NewBroadcaster()
	events.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events("")})
	lease, err := resourcelock.New(resourcelock.LeasesResourceLock, c.PodNamespace, c.Lease(), client.CoreV1(), client.CoordinationV1(), resourcelock.ResourceLockConfig{
		Identity: identity, EventRecorder: events.NewRecorder(clientgoscheme.Scheme, corev1.EventSource{Component: identity}),
	})
	if err != nil {
		return nil, fmt.Errorf("setting up the lease: %w", err)
	}
	former := formerManagers{client: client, namespace: c.PodNamespace, lease: c.LeaderElection.ID, pod: cmp.Or(c.PodName, hostname), now: time.Now}
	return &waitingLock{Interface: lease, waitsFor: former.running}, nil
}

// waitingLock is not taken while there is somebody to wait for.
type waitingLock struct {
	resourcelock.Interface
	// waitsFor names whom; nobody is empty.
	waitsFor func(context.Context) (string, error)
	taken    atomic.Bool
}

// Create implements resourcelock.Interface.
func (l *waitingLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.take(ctx, record, l.Interface.Create)
}

// Update implements resourcelock.Interface.
func (l *waitingLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.take(ctx, record, l.Interface.Update)
}

func (l *waitingLock) take(ctx context.Context, record resourcelock.LeaderElectionRecord, write func(context.Context, resourcelock.LeaderElectionRecord) error) error {
	if !l.taken.Load() {
		who, err := l.waitsFor(ctx)
		if err != nil {
			return err
		}
		if who != "" {
			return fmt.Errorf("%s may lead by a lease of an earlier version: it is waited for", who)
		}
	}
	err := write(ctx, record)
	if err == nil {
		l.taken.Store(true)
	}
	return err
}

// formerManagers are those of other revisions of this pod's Deployment.
type formerManagers struct {
	client    kubernetes.Interface
	namespace string
	// lease is the name that earlier versions used, and pod is this manager's.
	lease, pod string
	now        func() time.Time
}

// running names a manager that may lead by the lease of an earlier version: one of another
// revision that runs, or ends and holds that lease. It is empty where there is no such
// lease, outside of a Deployment, and where that may not be read.
func (f formerManagers) running(ctx context.Context) (string, error) {
	lease, err := f.client.CoordinationV1().Leases(f.namespace).Get(ctx, f.lease, metav1.GetOptions{})
	if err != nil {
		return "", unless(err, apierrors.IsNotFound)
	}
	me, err := f.client.CoreV1().Pods(f.namespace).Get(ctx, f.pod, metav1.GetOptions{})
	if err != nil {
		return "", unless(err, apierrors.IsNotFound, apierrors.IsForbidden)
	}
	own := metav1.GetControllerOf(me)
	mine, err := f.deploymentOf(ctx, own)
	if err != nil || mine == "" {
		return "", err
	}
	alike := labels.Set{}
	for key, value := range me.Labels {
		if key != "pod-template-hash" {
			alike[key] = value
		}
	}
	pods, err := f.client.CoreV1().Pods(f.namespace).List(ctx, metav1.ListOptions{LabelSelector: alike.String()})
	if err != nil {
		return "", unless(err, apierrors.IsForbidden)
	}
	held := lease.Spec.HolderIdentity != nil && lease.Spec.RenewTime != nil && lease.Spec.LeaseDurationSeconds != nil &&
		f.now().Before(lease.Spec.RenewTime.Add(time.Duration(*lease.Spec.LeaseDurationSeconds)*time.Second))
	for i := range pods.Items {
		pod := &pods.Items[i]
		by := metav1.GetControllerOf(pod)
		holds := held && strings.HasPrefix(*lease.Spec.HolderIdentity, pod.Name+"_")
		if by == nil || by.UID == own.UID || pod.Status.Phase != corev1.PodRunning || pod.DeletionTimestamp != nil && !holds {
			continue
		}
		if theirs, err := f.deploymentOf(ctx, by); err != nil || theirs == mine {
			return pod.Name, err
		}
	}
	return "", nil
}

// deploymentOf is the Deployment of a ReplicaSet, or empty.
func (f formerManagers) deploymentOf(ctx context.Context, set *metav1.OwnerReference) (types.UID, error) {
	if set == nil || set.Kind != "ReplicaSet" {
		return "", nil
	}
	found, err := f.client.AppsV1().ReplicaSets(f.namespace).Get(ctx, set.Name, metav1.GetOptions{})
	if err != nil {
		return "", unless(err, apierrors.IsNotFound, apierrors.IsForbidden)
	}
	if owner := metav1.GetControllerOf(found); owner != nil && found.UID == set.UID {
		return owner.UID, nil
	}
	return "", nil
}

// unless is the error if it is none of these.
func unless(err error, is ...func(error) bool) error {
	for _, known := range is {
		if known(err) {
			return nil
		}
	}
	return fmt.Errorf("looking for managers of an earlier version: %w", err)
}
