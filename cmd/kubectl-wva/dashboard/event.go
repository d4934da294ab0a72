package dashboard

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
)

// written is the note of an event about a write of replicas.
var written = regexp.MustCompile(`^replicas from (\d+) to (\d+): (.*)$`)

// readEvents are the decisions of which the cluster still has events.
func readEvents(ctx context.Context, api client.Reader, namespace string) ([]decided, error) {
	var list corev1.EventList
	err := api.List(ctx, &list, client.InNamespace(namespace), client.MatchingFields{"involvedObject.kind": v1alpha1.Kind})
	if err != nil {
		return nil, fmt.Errorf("listing events: %w", err)
	}
	var all []decided
	for i := range list.Items {
		e := &list.Items[i]
		match := written.FindStringSubmatch(e.Message)
		if match == nil {
			continue
		}
		from, _ := strconv.Atoi(match[1])
		to, _ := strconv.Atoi(match[2])
		all = append(all, decided{
			at: timeOf(e), variant: types.NamespacedName{Namespace: e.InvolvedObject.Namespace, Name: e.InvolvedObject.Name},
			from: from, to: to, reason: e.Reason, message: match[3],
		})
	}
	return all, nil
}

func timeOf(e *corev1.Event) time.Time {
	for _, at := range []time.Time{e.EventTime.Time, e.LastTimestamp.Time, e.FirstTimestamp.Time} {
		if !at.IsZero() {
			return at
		}
	}
	return e.CreationTimestamp.Time
}
