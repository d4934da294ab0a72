package api_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// base is what every object needs.
const base = "scaleTargetRef: {name: x}\nmodelID: m\n"

func policies(n int) string {
	return "[" + strings.TrimSuffix(strings.Repeat("{type: Pods, value: 1, periodSeconds: 1},", n), ",") + "]"
}

func text(n int) string { return strings.Repeat("a", n) }

// rules has for each rule of the schema an object that it refuses, what the user
// then reads, and the nearest object that it accepts.
var rules = map[string]struct {
	refused  string
	message  string
	accepted string
}{
	"a model is needed": {
		refused:  "scaleTargetRef: {name: x}",
		message:  "spec.modelID: Required value",
		accepted: base,
	},
	"a model has a name": {
		refused:  "scaleTargetRef: {name: x}\nmodelID: ''",
		message:  "spec.modelID in body should be at least 1 chars long",
		accepted: base,
	},
	"a model's name is bounded": {
		refused:  "scaleTargetRef: {name: x}\nmodelID: " + text(129),
		message:  "spec.modelID: Too long: may not be more than 128 bytes",
		accepted: "scaleTargetRef: {name: x}\nmodelID: " + text(128),
	},
	"a further name is not empty": {
		refused:  base + "alsoServes: ['']",
		message:  "spec.alsoServes[0] in body should be at least 1 chars long",
		accepted: base + "alsoServes: [lora]",
	},
	"a further name is bounded": {
		refused:  base + "alsoServes: [" + text(129) + "]",
		message:  "spec.alsoServes[0]: Too long: may not be more than 128 bytes",
		accepted: base + "alsoServes: [" + text(128) + "]",
	},
	"a further name acts on no terminal": {
		refused:  base + `alsoServes: ["a\u001b[2J"]`,
		message:  "spec.alsoServes[0] in body should match",
		accepted: base + "alsoServes: ['Qwen/Qwen3 32B']",
	},
	"a further name is listed once": {
		refused:  base + "alsoServes: [a, a]",
		message:  `spec.alsoServes[1]: Duplicate value: "a"`,
		accepted: base + "alsoServes: [a, b]",
	},
	"further names are few": {
		refused:  base + "alsoServes: [" + strings.Join(numbered(65), ", ") + "]",
		message:  "spec.alsoServes: Too many: 65: must have at most 64 items",
		accepted: base + "alsoServes: [" + strings.Join(numbered(64), ", ") + "]",
	},
	"a scale target is needed": {
		refused:  "modelID: m",
		message:  "spec.scaleTargetRef: Required value",
		accepted: base,
	},
	"a scale target has a name": {
		refused:  "scaleTargetRef: {kind: Deployment}\nmodelID: m",
		message:  "spec.scaleTargetRef.name: Required value",
		accepted: base,
	},
	"and that name is not empty": {
		refused:  "scaleTargetRef: {name: ''}\nmodelID: m",
		message:  "spec.scaleTargetRef.name in body should be at least 1 chars long",
		accepted: base,
	},
	"a target's name is bounded": {
		refused:  "modelID: m\nscaleTargetRef: {name: " + text(254) + "}",
		message:  "spec.scaleTargetRef.name: Too long: may not be more than 253 bytes",
		accepted: "modelID: m\nscaleTargetRef: {name: " + text(253) + "}",
	},
	"a target's version": {
		refused:  "modelID: m\nscaleTargetRef: {name: x, apiVersion: apps}",
		message:  "apiVersion must be a group and a version, such as apps/v1",
		accepted: "modelID: m\nscaleTargetRef: {name: x, apiVersion: apps/v1beta2}",
	},
	"a version of the core group": {
		refused:  "modelID: m\nscaleTargetRef: {name: x, apiVersion: /v1}",
		message:  "apiVersion must be a group and a version",
		accepted: "modelID: m\nscaleTargetRef: {name: x, apiVersion: v1, kind: ReplicationController}",
	},
	"a target's version is bounded": {
		refused:  "modelID: m\nscaleTargetRef: {name: x, apiVersion: " + text(251) + "/v1}",
		message:  "spec.scaleTargetRef.apiVersion: Too long: may not be more than 253 bytes",
		accepted: "modelID: m\nscaleTargetRef: {name: x, apiVersion: " + text(250) + "/v1}",
	},
	"a target's kind": {
		refused:  "modelID: m\nscaleTargetRef: {name: x, kind: deployment}",
		message:  "kind must be the kind of the target as its manifest writes it, such as Deployment",
		accepted: "modelID: m\nscaleTargetRef: {name: x, kind: Deployment}",
	},
	"a target's kind is bounded": {
		refused:  "modelID: m\nscaleTargetRef: {name: x, kind: A" + text(63) + "}",
		message:  "spec.scaleTargetRef.kind: Too long: may not be more than 63 bytes",
		accepted: "modelID: m\nscaleTargetRef: {name: x, kind: A" + text(62) + "}",
	},
	"a variant ID ends with a count": {
		refused:  base + "variantID: m-H100",
		message:  "variantID must have the form {modelID}-{accelerator}-{acceleratorCount}, such as meta/llama-3.1-8b-H100-1: correct it, or leave variantID out",
		accepted: base + "variantID: m-H100-1",
	},
	"the count has no leading zero": {
		refused:  base + "variantID: m-H100-01",
		message:  "variantID must have the form",
		accepted: base + "variantID: m-H100-10",
	},
	"the accelerator of the ID is one token": {
		refused:  base + "variantID: m-H100.x-1",
		message:  "variantID must have the form",
		accepted: base + "variantID: m-H100_x-1",
	},
	"a variant ID is not empty": {
		refused:  base + "variantID: ''",
		message:  "variantID must have the form",
		accepted: base,
	},
	"a variant ID is bounded": {
		refused:  base + "variantID: " + text(252) + "-aa-1",
		message:  "spec.variantID: Too long: may not be more than 256 bytes",
		accepted: base + "variantID: " + text(251) + "-aa-1",
	},
	"a variant ID repeats the fields": {
		refused:  base + "variantID: m-H100-1\naccelerator: A100\nacceleratorCount: 2",
		message:  "spec.variantID: Invalid value: variantID must be m-A100- and the acceleratorCount: correct it, or leave variantID out",
		accepted: base + "variantID: m-A100-2\naccelerator: A100\nacceleratorCount: 2",
	},
	"a variant ID repeats the model": {
		refused:  base + "variantID: other-A100-2\naccelerator: A100\nacceleratorCount: 2",
		message:  "variantID must be m-A100- and the acceleratorCount",
		accepted: base + "variantID: other-A100-2\naccelerator: A100",
	},
	"an accelerator is not empty": {
		refused:  base + "accelerator: ''",
		message:  "spec.accelerator in body should be at least 1 chars long",
		accepted: base + "accelerator: T",
	},
	"an accelerator is bounded": {
		refused:  base + "accelerator: " + text(65),
		message:  "spec.accelerator: Too long: may not be more than 64 bytes",
		accepted: base + "accelerator: " + text(64),
	},
	"a replica has an accelerator": {
		refused:  base + "acceleratorCount: 0",
		message:  "spec.acceleratorCount in body should be greater than or equal to 1",
		accepted: base + "acceleratorCount: 1",
	},
	"a count is a whole number": {
		refused:  base + "acceleratorCount: 1.5",
		message:  `spec.acceleratorCount in body must be of type int32: "float64"`,
		accepted: base + "acceleratorCount: 2",
	},
	"a cost has no unit": {
		refused:  base + "variantCost: $4",
		message:  `variantCost must be a decimal number without sign, exponent or unit, such as "4.5"`,
		accepted: base + "variantCost: '4'",
	},
	"a cost has no sign": {
		refused:  base + "variantCost: '-4.5'",
		message:  "variantCost must be a decimal number",
		accepted: base + "variantCost: '4.5'",
	},
	"a cost has no exponent": {
		refused:  base + "variantCost: '1e3'",
		message:  "variantCost must be a decimal number",
		accepted: base + "variantCost: '1000'",
	},
	"a cost does not end in a dot": {
		refused:  base + "variantCost: '4.'",
		message:  "variantCost must be a decimal number",
		accepted: base + "variantCost: '4.0'",
	},
	"a cost is not empty": {
		refused:  base + "variantCost: ''",
		message:  "variantCost must be a decimal number",
		accepted: base + "variantCost: '0'",
	},
	"a cost is a text": {
		refused:  base + "variantCost: 4.5",
		message:  `spec.variantCost in body must be of type string: "number"`,
		accepted: base + "variantCost: '4.5'",
	},
	"a cost is bounded": {
		refused:  base + "variantCost: '" + strings.Repeat("1", 33) + "'",
		message:  "spec.variantCost: Too long: may not be more than 32 bytes",
		accepted: base + "variantCost: '" + strings.Repeat("1", 32) + "'",
	},
	"a service class has a name": {
		refused:  base + "sloClassRef: {key: k}",
		message:  "spec.sloClassRef.name: Required value",
		accepted: base + "sloClassRef: {name: gold}",
	},
	"that name is not empty": {
		refused:  base + "sloClassRef: {name: ''}",
		message:  "spec.sloClassRef.name in body should be at least 1 chars long",
		accepted: base + "sloClassRef: {name: gold}",
	},
	"that name is bounded": {
		refused:  base + "sloClassRef: {name: " + text(254) + "}",
		message:  "spec.sloClassRef.name: Too long: may not be more than 253 bytes",
		accepted: base + "sloClassRef: {name: " + text(253) + "}",
	},
	"a service class key has text": {
		refused:  base + "sloClassRef: {name: gold, key: ''}",
		message:  "spec.sloClassRef.key in body should be at least 1 chars long",
		accepted: base + "sloClassRef: {name: gold, key: k}",
	},
	"a service class key is bound": {
		refused:  base + "sloClassRef: {name: gold, key: " + text(254) + "}",
		message:  "spec.sloClassRef.key: Too long: may not be more than 253 bytes",
		accepted: base + "sloClassRef: {name: gold, key: " + text(253) + "}",
	},
	"a batch holds a request": {
		refused:  base + "variantProfile: {maxBatchSize: 0}",
		message:  "spec.variantProfile.maxBatchSize in body should be greater than or equal to 1",
		accepted: base + "variantProfile: {maxBatchSize: 1}",
	},
	"decode parameters are given": {
		refused:  base + "variantProfile: {perfParms: {decodeParms: {}}}",
		message:  "spec.variantProfile.perfParms.decodeParms in body should have at least 1 properties",
		accepted: base + "variantProfile: {perfParms: {}}",
	},
	"prefill parameters are given": {
		refused:  base + "variantProfile: {perfParms: {prefillParms: {}}}",
		message:  "spec.variantProfile.perfParms.prefillParms in body should have at least 1 properties",
		accepted: base + "variantProfile: {perfParms: {}}",
	},
	"alpha is a number": {
		refused:  base + "variantProfile: {perfParms: {decodeParms: {alpha: 7ms}}}",
		message:  `spec.variantProfile.perfParms.decodeParms.alpha: Invalid value: "7ms": a profile parameter must be a number of milliseconds in quotes, without sign or unit, such as "7.47" or "3.4e-4"`,
		accepted: base + "variantProfile: {perfParms: {decodeParms: {alpha: '7'}}}",
	},
	"beta is not negative": {
		refused:  base + "variantProfile: {perfParms: {decodeParms: {beta: '-1'}}}",
		message:  "a profile parameter must be a number of milliseconds",
		accepted: base + "variantProfile: {perfParms: {decodeParms: {beta: '1'}}}",
	},
	"gamma is in quotes": {
		refused:  base + "variantProfile: {perfParms: {prefillParms: {gamma: 1.5}}}",
		message:  `gamma in body must be of type string: "number"`,
		accepted: base + "variantProfile: {perfParms: {prefillParms: {gamma: '1.5'}}}",
	},
	"delta is a number": {
		refused:  base + "variantProfile: {perfParms: {prefillParms: {delta: ''}}}",
		message:  "a profile parameter must be a number of milliseconds",
		accepted: base + "variantProfile: {perfParms: {prefillParms: {delta: '3.37E-4'}}}",
	},
	"a parameter is bounded": {
		refused:  base + "variantProfile: {perfParms: {prefillParms: {delta: '" + strings.Repeat("1", 33) + "'}}}",
		message:  "delta: Too long: may not be more than 32 bytes",
		accepted: base + "variantProfile: {perfParms: {prefillParms: {delta: '" + strings.Repeat("1", 32) + "'}}}",
	},
	"a least number is a number": {
		refused:  base + "minReplicas: -1",
		message:  "spec.minReplicas in body should be greater than or equal to 0",
		accepted: base + "minReplicas: 0",
	},
	"a greatest number is not zero": {
		refused:  base + "maxReplicas: 0",
		message:  "spec.maxReplicas in body should be greater than or equal to 1",
		accepted: base + "maxReplicas: 1",
	},
	"bounds are in order": {
		refused:  base + "minReplicas: 3\nmaxReplicas: 2",
		message:  "spec.minReplicas: Invalid value: minReplicas is above maxReplicas: lower minReplicas or raise maxReplicas",
		accepted: base + "minReplicas: 2\nmaxReplicas: 2",
	},
	"actuation is one of three": {
		refused:  base + "actuation: Always",
		message:  `spec.actuation: Unsupported value: "Always": supported values: "Scale", "Metric", "Off"`,
		accepted: base + "actuation: 'Off'",
	},
	"off is a word, which YAML does not know without quotes": {
		refused:  base + "actuation: Off",
		message:  `spec.actuation in body must be of type string: "boolean"`,
		accepted: base + `actuation: "Off"`,
	},

	"unknown capacity is answered in one of two ways": {
		refused:  base + "onUnknownCapacity: Guess",
		message:  `spec.onUnknownCapacity: Unsupported value: "Guess": supported values: "Allow", "Hold"`,
		accepted: base + "onUnknownCapacity: Hold",
	},
	"no answer to unknown capacity is left out, not empty": {
		refused:  base + "onUnknownCapacity: ''",
		message:  `spec.onUnknownCapacity: Unsupported value: "": supported values: "Allow", "Hold"`,
		accepted: base + "onUnknownCapacity: Allow",
	},
	"victims are chosen by one of two": {
		refused:  base + "victims: Oldest",
		message:  `spec.victims: Unsupported value: "Oldest": supported values: "Packing", "Kubernetes"`,
		accepted: base + "victims: Kubernetes",
	},
	"a window is not negative": {
		refused:  base + "behavior: {scaleUp: {stabilizationWindowSeconds: -1}}",
		message:  "stabilizationWindowSeconds in body should be greater than or equal to 0",
		accepted: base + "behavior: {scaleUp: {stabilizationWindowSeconds: 0}}",
	},
	"a window is an hour": {
		refused:  base + "behavior: {scaleDown: {stabilizationWindowSeconds: 3601}}",
		message:  "stabilizationWindowSeconds in body should be less than or equal to 3600",
		accepted: base + "behavior: {scaleDown: {stabilizationWindowSeconds: 3600}}",
	},
	"a selection is one of three": {
		refused:  base + "behavior: {scaleDown: {selectPolicy: None}}",
		message:  `selectPolicy: Unsupported value: "None": supported values: "Max", "Min", "Disabled"`,
		accepted: base + "behavior: {scaleDown: {selectPolicy: Disabled}}",
	},
	"policies are bounded": {
		refused:  base + "behavior: {scaleUp: {policies: " + policies(17) + "}}",
		message:  "spec.behavior.scaleUp.policies: Too many: 17: must have at most 16 items",
		accepted: base + "behavior: {scaleUp: {policies: " + policies(16) + "}}",
	},
	"a policy's type is one of two": {
		refused:  base + "behavior: {scaleUp: {policies: [{type: Nodes, value: 1, periodSeconds: 1}]}}",
		message:  `type: Unsupported value: "Nodes": supported values: "Pods", "Percent"`,
		accepted: base + "behavior: {scaleUp: {policies: [{type: Percent, value: 1, periodSeconds: 1}]}}",
	},
	"a policy needs its type": {
		refused:  base + "behavior: {scaleUp: {policies: [{value: 1, periodSeconds: 1}]}}",
		message:  "policies[0].type: Required value",
		accepted: base + "behavior: {scaleUp: {policies: " + policies(1) + "}}",
	},
	"a policy needs its value": {
		refused:  base + "behavior: {scaleUp: {policies: [{type: Pods, periodSeconds: 1}]}}",
		message:  "policies[0].value: Required value",
		accepted: base + "behavior: {scaleUp: {policies: " + policies(1) + "}}",
	},
	"a policy needs its period": {
		refused:  base + "behavior: {scaleUp: {policies: [{type: Pods, value: 1}]}}",
		message:  "policies[0].periodSeconds: Required value",
		accepted: base + "behavior: {scaleUp: {policies: " + policies(1) + "}}",
	},
	"a policy allows a change": {
		refused:  base + "behavior: {scaleUp: {policies: [{type: Pods, value: 0, periodSeconds: 1}]}}",
		message:  "policies[0].value in body should be greater than or equal to 1",
		accepted: base + "behavior: {scaleUp: {policies: " + policies(1) + "}}",
	},
	"a period is not empty": {
		refused:  base + "behavior: {scaleUp: {policies: [{type: Pods, value: 1, periodSeconds: 0}]}}",
		message:  "policies[0].periodSeconds in body should be greater than or equal to 1",
		accepted: base + "behavior: {scaleUp: {policies: " + policies(1) + "}}",
	},
	"a period is half an hour": {
		refused:  base + "behavior: {scaleUp: {policies: [{type: Pods, value: 1, periodSeconds: 1801}]}}",
		message:  "policies[0].periodSeconds in body should be less than or equal to 1800",
		accepted: base + "behavior: {scaleUp: {policies: [{type: Pods, value: 1, periodSeconds: 1800}]}}",
	},
	"a tolerance is a fraction": {
		refused:  base + "behavior: {scaleUp: {tolerance: 10}}",
		message:  `tolerance must be a fraction of at least 0 and below 1, without an exponent: write "0.1" for ten per cent`,
		accepted: base + "behavior: {scaleUp: {tolerance: 0}}",
	},
	"a tolerance is below one": {
		refused:  base + "behavior: {scaleDown: {tolerance: '1'}}",
		message:  "tolerance must be a fraction of at least 0 and below 1",
		accepted: base + "behavior: {scaleDown: {tolerance: '0.99'}}",
	},
	"a tolerance is not negative": {
		refused:  base + "behavior: {scaleDown: {tolerance: '-0.1'}}",
		message:  "tolerance must be a fraction of at least 0 and below 1",
		accepted: base + "behavior: {scaleDown: {tolerance: 100m}}",
	},
	"a tolerance is a number": {
		refused:  base + "behavior: {scaleDown: {tolerance: 10%}}",
		message:  "tolerance must be a fraction of at least 0 and below 1",
		accepted: base + "behavior: {scaleDown: {tolerance: '.1'}}",
	},
	"a tolerance with a dot is quoted": {
		refused:  base + "behavior: {scaleDown: {tolerance: 0.1}}",
		message:  "spec.behavior.scaleDown.tolerance",
		accepted: base + "behavior: {scaleDown: {tolerance: '0.1'}}",
	},
	"a tolerance has no exponent: a great one would take minutes to compare": {
		refused:  base + "behavior: {scaleDown: {tolerance: '1e-2'}}",
		message:  "tolerance must be a fraction of at least 0 and below 1, without an exponent",
		accepted: base + "behavior: {scaleDown: {tolerance: '0.01'}}",
	},
	"no ESC in the model": {
		refused:  "scaleTargetRef: {name: x}\n" + `modelID: "llama\e[2Jx"`,
		message:  "modelID must have no control characters",
		accepted: "scaleTargetRef: {name: x}\nmodelID: meta-llama/Llama-3.1-8B-Instruct (latest) größe=8B",
	},
	"no line break in the model": {
		refused:  "scaleTargetRef: {name: x}\n" + `modelID: "llama\nREADY"`,
		message:  "modelID must have no control characters",
		accepted: "scaleTargetRef: {name: x}\nmodelID: llama ready",
	},
	"nothing that turns the direction of writing": {
		refused:  "scaleTargetRef: {name: x}\n" + `modelID: "llama\u202Egpj"`,
		message:  "modelID must have no control characters and no invisible ones",
		accepted: "scaleTargetRef: {name: x}\nmodelID: لاما",
	},
	"no control character in the accelerator": {
		refused:  base + `accelerator: "H100\a"`,
		message:  "accelerator must have no control characters",
		accepted: base + "accelerator: NVIDIA H100 80GB",
	},
	"no control character in the class": {
		refused:  base + `sloClassRef: {name: "gold\0"}`,
		message:  "the name of the service class must have no control characters",
		accepted: base + "sloClassRef: {name: gold}",
	},
	"no control character in the key": {
		refused:  base + `sloClassRef: {name: gold, key: "a\tb"}`,
		message:  "the key must have no control characters",
		accepted: base + "sloClassRef: {name: gold, key: a b}",
	},
	"no control character in the target": {
		refused:  "modelID: m\n" + `scaleTargetRef: {name: "a\u200b"}`,
		message:  "the target's name must have no control characters",
		accepted: "modelID: m\nscaleTargetRef: {name: a}",
	},
	"a misspelt field is named": {
		refused:  base + "maxReplica: 3",
		message:  `unknown field "spec.maxReplica"`,
		accepted: base + "maxReplicas: 3",
	},
}

func TestRules(t *testing.T) {
	for name, rule := range rules {
		t.Run(name, func(t *testing.T) {
			_, err := create(t, variant(t, rule.refused))
			require.Error(t, err)
			require.True(t, apierrors.IsInvalid(err) || apierrors.IsBadRequest(err), "%v", err)
			require.ErrorContains(t, err, rule.message)

			_, err = create(t, variant(t, rule.accepted))
			require.NoError(t, err, "the neighbour of %q", name)
		})
	}
}

func TestRulesHoldForChangesToo(t *testing.T) {
	created, err := create(t, variant(t, base+"maxReplicas: 3"))
	require.NoError(t, err)
	spec := created.Object["spec"].(map[string]any)
	spec["minReplicas"] = int64(4)
	_, err = update(t, created)
	require.ErrorContains(t, err, "minReplicas is above maxReplicas")
	spec["maxReplicas"] = int64(4)
	_, err = update(t, created)
	require.NoError(t, err)
}

// numbered are so many names.
func numbered(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprint("a", i)
	}
	return all
}
