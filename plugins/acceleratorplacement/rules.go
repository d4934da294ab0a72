package acceleratorplacement

import (
	"context"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	coreinformers "k8s.io/client-go/informers/core/v1"
	nodeinformers "k8s.io/client-go/informers/node/v1"
	schedulinginformers "k8s.io/client-go/informers/scheduling/v1"
	"k8s.io/client-go/kubernetes"

	"llmd.ai/workload-variant-autoscaler/pkg/inventory"
)

// rules are the objects that say what pods will be and how many there may be. Their
// informers are not the scheduler's own, which it waits for: what may not be read is
// unread, and pods are scheduled all the same.
type rules struct {
	factory    informers.SharedInformerFactory
	runtimes   nodeinformers.RuntimeClassInformer
	priorities schedulinginformers.PriorityClassInformer
	quotas     coreinformers.ResourceQuotaInformer
}

func newRules(client kubernetes.Interface) *rules {
	f := informers.NewSharedInformerFactory(client, 0)
	r := &rules{f, f.Node().V1().RuntimeClasses(), f.Scheduling().V1().PriorityClasses(), f.Core().V1().ResourceQuotas()}
	// The factory starts those that were asked for.
	r.runtimes.Informer()
	r.priorities.Informer()
	r.quotas.Informer()
	return r
}

// start runs the informers until the context ends.
func (r *rules) start(ctx context.Context) { r.factory.Start(ctx.Done()) }

// objects are the rules that are read. Disruption budgets bound a count and do not change
// it.
func (r *rules) objects() inventory.Objects {
	o := inventory.Objects{Unread: inventory.Unread{
		RuntimeClasses:  !r.runtimes.Informer().HasSynced(),
		PriorityClasses: !r.priorities.Informer().HasSynced(),
		Budgets:         true,
		Quotas:          !r.quotas.Informer().HasSynced(),
	}}
	// A cache cannot fail to be listed.
	o.RuntimeClasses, _ = r.runtimes.Lister().List(labels.Everything())
	o.PriorityClasses, _ = r.priorities.Lister().List(labels.Everything())
	o.Quotas, _ = r.quotas.Lister().List(labels.Everything())
	return o
}
