package controller

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

// Two managers handle one object and have other settings: both want the same replicas, and say
// so for another reason.
func TestTwoManagersOfOneObjectSayThatTheyAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := newBench(t, 1), newBench(t, 1)
		second.api = first.api
		second.observer.reader, second.observer.targets.reader, second.reporter.statuses = first.api, first.api, newStatuses(first.api)
		second.decide = func(s decision.Snapshot, p decision.Policy, m decision.Memory, kind decision.Round) (decision.Plan, decision.Memory) {
			plan, m := second.wakes(s, p, m, kind)
			plan.Each(func(v *decision.VariantPlan) {
				v.Reason, v.Message = decision.ReasonMinReplicas, decision.Words("at least 1")
			})
			return plan, m
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			<-time.After(3 * time.Second)
			ended <- second.Start(ctx)
		}()
		first.run(t, time.Hour)
		cancel()
		require.NoError(t, <-ended)
		found := apimeta.FindStatusCondition(first.status(t).Conditions, v1alpha1.ConditionConflict)
		require.NotNil(t, found)
		assert.Equal(t, v1alpha1.ReasonStatusOverwritten, found.Reason)
		var va v1alpha1.VariantAutoscaling
		require.NoError(t, first.api.Get(t.Context(), client.ObjectKey{Namespace: "n", Name: "v"}, &va))
		writes, err := strconv.Atoi(va.ResourceVersion)
		require.NoError(t, err)
		assert.Less(t, writes, 1000+2*(3+60/5), "each of them rests for five minutes")
		told := append(drained(first.recorder), drained(second.recorder)...)
		require.NotEmpty(t, told)
		assert.LessOrEqual(t, len(told), 2, "once each")
		assert.Contains(t, told[0], "Warning StatusOverwritten another manager keeps writing this status")
	})
}
