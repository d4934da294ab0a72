package controller

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

// bySelector says that the target's pods are found by the selector of its scale.
// One that demands no value of any label is not followed: it could take in the pods
// of others.
func (t *target) bySelector(text string) {
	selector, err := labels.Parse(text)
	switch {
	case err != nil:
		t.blind = fmt.Sprintf("the pods of %s cannot be found: its selector %q: %v", t, text, err)
	case demanded(selector) == "":
		t.blind = fmt.Sprintf("the pods of %s cannot be found: its selector %q demands no value of any label", t, text)
	default:
		t.selector = selector
	}
}

// demanded is one label that every pod of the selector carries, or empty.
func demanded(selector labels.Selector) string {
	requirements, _ := selector.Requirements()
	for _, r := range requirements {
		switch r.Operator() {
		case selection.Equals, selection.DoubleEquals, selection.In:
			if r.Values().Len() == 1 {
				return r.Key() + "=" + r.Values().List()[0]
			}
		}
	}
	return ""
}

// selectPods finds the pods of the targets that name a selector, in one pass over
// each namespace. A pod meets only the selectors that demand one of its labels.
func (f *targetFinder) selectPods(ctx context.Context, variants []*variant) error {
	f.selected = map[decision.Key][]*corev1.Pod{}
	wanted := map[string]map[string][]*variant{}
	for _, v := range variants {
		if v.target.selector == nil {
			continue
		}
		here := wanted[v.key.Namespace]
		if here == nil {
			here = map[string][]*variant{}
			wanted[v.key.Namespace] = here
		}
		label := demanded(v.target.selector)
		here[label] = append(here[label], v)
	}
	for namespace, here := range wanted {
		var pods corev1.PodList
		if err := f.reader.List(ctx, &pods, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
			return fmt.Errorf("listing the pods of namespace %s: %w", namespace, err)
		}
		for i := range pods.Items {
			f.assign(&pods.Items[i], here)
		}
	}
	return nil
}

func (f *targetFinder) assign(pod *corev1.Pod, wanted map[string][]*variant) {
	for name, value := range pod.Labels {
		for _, v := range wanted[name+"="+value] {
			if v.target.selector.Matches(labels.Set(pod.Labels)) {
				f.selected[v.key] = append(f.selected[v.key], pod)
			}
		}
	}
}
