package status

import (
	"context"
	"fmt"
	"reflect"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/cluster"
	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/output"
	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
)

// deleted is the state of an object that is gone.
const deleted = "Deleted"

// again is how long a watch that failed waits.
const again = 2 * time.Second

// nameOf names an object.
type nameOf = types.NamespacedName

// follower shows the rows that change.
type follower struct {
	*screen
	shown map[nameOf]Row
	// widths are those of the columns so far.
	widths []int
}

// follow shows the rows and then every change, until the context ends. Where a watch ends,
// as every one does in time, all are listed again.
func (s *screen) follow(ctx context.Context, api client.WithWatch, namespace string, list *v1alpha1.VariantAutoscalingList) error {
	f := &follower{screen: s, shown: map[nameOf]Row{}}
	if err := f.begin(list); err != nil {
		return err
	}
	for {
		err := f.watch(ctx, api, namespace, list.ResourceVersion)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the user ends a watch
		}
		if err != nil && !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
			return cluster.Advise(err, "watch", v1alpha1.Resource, namespace)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(again):
		}
		if list, err = cluster.Variants(ctx, api, namespace); err != nil {
			return err
		}
		if err := f.catchUp(list); err != nil {
			return err
		}
	}
}

// begin shows the table as it is.
func (f *follower) begin(list *v1alpha1.VariantAutoscalingList) error {
	f.widths = make([]int, len(header(f.all, false)))
	rows := rowsOf(list, f.modes)
	now := time.Now()
	f.widen(header(f.all, false))
	for i := range rows {
		f.widen(rows[i].cells(f.all, false, now))
	}
	if err := f.title(); err != nil {
		return err
	}
	for _, r := range rows {
		if err := f.row(r); err != nil {
			return err
		}
	}
	return nil
}

// title shows the names of the columns.
func (f *follower) title() error {
	if f.form.ForPrograms() {
		return nil
	}
	return f.line(header(f.all, false))
}

// widen makes room for a row, and reports whether a column grew before the last one, which may
// have any width.
func (f *follower) widen(cells []string) (grew bool) {
	for i, cell := range cells {
		grew = grew || len(cell) > f.widths[i] && i < len(cells)-1
		f.widths[i] = max(f.widths[i], len(cell))
	}
	return grew
}

// catchUp shows what changed while nothing watched.
func (f *follower) catchUp(list *v1alpha1.VariantAutoscalingList) error {
	there := map[nameOf]bool{}
	for _, r := range rowsOf(list, f.modes) {
		there[r.key()] = true
		if err := f.row(r); err != nil {
			return err
		}
	}
	for key, r := range f.shown {
		if !there[key] {
			if err := f.gone(r); err != nil {
				return err
			}
		}
	}
	return nil
}

// watch shows changes until the watch ends.
func (f *follower) watch(ctx context.Context, api client.WithWatch, namespace, version string) error {
	changes, err := api.Watch(ctx, &v1alpha1.VariantAutoscalingList{}, client.InNamespace(namespace),
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: version}})
	if err != nil {
		return err
	}
	defer changes.Stop()
	for change := range changes.ResultChan() {
		object, ok := change.Object.(*v1alpha1.VariantAutoscaling)
		switch {
		case change.Type == watch.Error:
			return apierrors.FromObject(change.Object)
		case !ok:
		case change.Type == watch.Deleted:
			err = f.gone(RowOf(object, f.modes))
		default:
			err = f.row(RowOf(object, f.modes))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *Row) key() nameOf {
	return nameOf{Namespace: r.Namespace, Name: r.Name}
}

// gone shows that an object was deleted.
func (f *follower) gone(r Row) error {
	r.State, r.Message = deleted, ""
	err := f.row(r)
	delete(f.shown, r.key())
	return err
}

// row shows a row, unless it is there like that already.
func (f *follower) row(r Row) error {
	if was, ok := f.shown[r.key()]; ok && reflect.DeepEqual(was, r) {
		return nil
	}
	f.shown[r.key()] = r
	if !f.form.ForPrograms() {
		cells := r.cells(f.all, false, time.Now())
		if f.widen(cells) {
			// The columns that follow are others than those above.
			if err := f.title(); err != nil {
				return err
			}
		}
		return f.line(cells)
	}
	if f.form.String() == output.YAML {
		if _, err := fmt.Fprintln(f.out, "---"); err != nil {
			return err
		}
	}
	return f.form.Write(f.out, r)
}

func (f *follower) line(cells []string) error {
	for i, cell := range cells {
		cell = output.Cell(cell)
		if i < len(cells)-1 {
			cell = fmt.Sprintf("%-*s  ", f.widths[i], cell)
		}
		if _, err := fmt.Fprint(f.out, cell); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(f.out)
	return err
}
