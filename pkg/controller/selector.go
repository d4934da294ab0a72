package controller

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
)

// bySelector says that the target's pods are found by the selector of its scale.
// One that demands no value of any label is not followed: it could take in the pods
// of others.
func (t *target) bySelector(text string) {
	selector, err := labels.Parse(text)
	switch {
	case err != nil:
		t.selectorProblem = fmt.Sprintf("the pods of %s cannot be found: its selector %q: %v", t, text, err)
	case demanded(selector) == "":
		t.selectorProblem = fmt.Sprintf("the pods of %s cannot be found: its selector %q demands no value of any label", t, text)
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

// givePods gives the variants the pods of their targets, sorted by name, in one pass
// over all pods. A pod of a kind whose owners are not known meets only the selectors
// that demand one of its labels.
func givePods(pods []*corev1.Pod, variants []*variant) {
	owners := map[types.UID]*variant{}
	wanted := map[string]map[string][]*variant{}
	for _, v := range variants {
		if v.target.scale == nil || v.target.lent {
			continue
		}
		for _, owner := range v.target.owners {
			owners[owner] = v
		}
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
	for _, pod := range pods {
		if owner := metav1.GetControllerOfNoCopy(pod); owner != nil && owners[owner.UID] != nil {
			v := owners[owner.UID]
			v.pods = append(v.pods, pod)
		}
		here := wanted[pod.Namespace]
		if here == nil {
			continue
		}
		for name, value := range pod.Labels {
			for _, v := range here[name+"="+value] {
				if v.target.selector.Matches(labels.Set(pod.Labels)) {
					v.pods = append(v.pods, pod)
				}
			}
		}
	}
	for _, v := range variants {
		slices.SortFunc(v.pods, func(a, b *corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	}
}
