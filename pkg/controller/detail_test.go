package controller

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

func TestInputsAndScoresAreLoggedInDetail(t *testing.T) {
	var log bench
	plan := &decision.Plan{Models: []decision.ModelPlan{{Namespace: "n", ID: "m", Demand: &decision.Demand{Arrival: 4}, Variants: []decision.VariantPlan{*settled()}}}}
	seen := &observation{snapshot: decision.Snapshot{Models: []decision.Model{{Namespace: "n", ID: "m", Variants: []decision.Variant{{
		Name: "v", Replicas: []decision.Replica{{Name: "pod", KVUse: decision.Sample{Value: 0.5, Time: noon, Present: true}}},
	}}}}}}
	logDetail(log.loggingAt(t, detailed-1), plan, seen)
	assert.Empty(t, log.logs)
	logDetail(log.loggingAt(t, detailed), plan, seen)
	for _, want := range []string{
		`"Inputs of a model" "model"="m"`, `"Inputs of a replica" "variant"={"name"="v" "namespace"="n"} "pod"="pod" "kvUse"=0.5 "waiting"="unknown"`,
		`"Scores of a model" "model"="m" "namespace"="n" "arrival"=4`, `"Scores of a variant" "variant"={"name"="v" "namespace"="n"} "servesEach"=`,
	} {
		assert.Len(t, log.logged(want), 1, "%s is not once in %s", want, log.logs)
	}
}
