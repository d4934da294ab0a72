package config_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/config"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

// publishedList has the layout of the configuration guide.
const publishedList = `
- name: Premium
  model: meta/llama-3.1-8b
  priority: 1
  slo-itl: 24        # Time per output token (ms)
  slo-ttw: 500       # Time to first token (ms)

- name: Standard
  model: meta/llama-3.1-8b
  priority: 5
  slo-itl: 50
  slo-ttw: 1000
- {name: premium, model: other, priority: 1, slo-itl: 30}
`

func TestParseServiceClasses(t *testing.T) {
	premium := config.ServiceClass{Name: "Premium", Entry: "premium.yaml", Priority: 1, Targets: map[string]capacity.SLO{
		"default/default": {ITL: 24, TTFT: 500}, "meta/llama0-70b": {ITL: 80, TTFT: 500},
	}}
	freemium := config.ServiceClass{Name: "Freemium", Entry: "freemium.yaml", Priority: 10, Targets: map[string]capacity.SLO{
		"ibm/granite-13b": {ITL: 200, TTFT: 2000},
	}}
	targets := map[string]capacity.SLO{"m": {ITL: 24, TTFT: 500}}
	tests := map[string]struct {
		data     map[string]string
		want     []config.ServiceClass
		warnings []string
	}{
		"no data at all": {},
		"one entry per class, the most important first": {
			data: map[string]string{
				"freemium.yaml": "name: Freemium\npriority: 10\ndata:\n  - model: ibm/granite-13b\n    slo-tpot: 200\n    slo-ttft: 2000\n",
				"premium.yaml": "name: Premium\npriority: 1\ndata:\n  - model: default/default\n    slo-tpot: 24\n    slo-ttft: 500\n" +
					"  - model: meta/llama0-70b\n    slo-tpot: 80\n    slo-ttft: 500\n",
			},
			want: []config.ServiceClass{premium, freemium},
		},
		"JSON in the other spelling": {
			data: map[string]string{"a": `{"name": "A", "priority": 2, "modelTargets": [{"model": "m", "slo-itl": 24, "slo-ttft": 500}]}`},
			want: []config.ServiceClass{{Name: "A", Entry: "a", Priority: 2, Targets: targets}},
		},
		"the spellings may be mixed": {
			data: map[string]string{"a": `{name: A, priority: 2, data: [{model: m, slo-itl: 24, slo-ttft: 500}]}`},
			want: []config.ServiceClass{{Name: "A", Entry: "a", Priority: 2, Targets: targets}},
		},
		"latencies in seconds are told": {
			data: map[string]string{"a": `{name: A, priority: 2, data: [{model: m, slo-itl: 0.024, slo-ttft: 0.5}]}`},
			want: []config.ServiceClass{{Name: "A", Entry: "a", Priority: 2, Targets: map[string]capacity.SLO{"m": {ITL: 0.024, TTFT: 0.5}}}},
			warnings: []string{`entry "a", data[0]: slo-ttft is 0.5 milliseconds, which no server keeps: write 500 if seconds were meant`,
				`entry "a", data[0]: slo-itl is 0.024 milliseconds, which no server keeps: write 24 if seconds were meant`},
		},
		"all classes in one entry": {
			data: map[string]string{"classes.json": `{"serviceClasses": [
				{"name": "B", "priority": 5, "modelTargets": [{"model": "m", "slo-itl": 24, "slo-ttft": 500}]},
				{"name": "A", "priority": 5, "modelTargets": [{"model": "m", "slo-itl": 24, "slo-ttft": 500}]}]}`},
			want: []config.ServiceClass{
				{Name: "A", Entry: "classes.json", Priority: 5, Targets: targets},
				{Name: "B", Entry: "classes.json", Priority: 5, Targets: targets},
			},
		},
		"a list with one model per item, where a class comes up several times": {
			data: map[string]string{"serviceClasses": publishedList},
			want: []config.ServiceClass{
				{Name: "Premium", Entry: "serviceClasses", Priority: 1, Targets: map[string]capacity.SLO{"meta/llama-3.1-8b": {ITL: 24, TTFT: 500}, "other": {ITL: 30}}},
				{Name: "Standard", Entry: "serviceClasses", Priority: 5, Targets: map[string]capacity.SLO{"meta/llama-3.1-8b": {ITL: 50, TTFT: 1000}}},
			},
		},
		"the same list in a field of its own": {
			data: map[string]string{"classes.yaml": "serviceClasses:\n" + publishedList},
			want: []config.ServiceClass{
				{Name: "Premium", Entry: "classes.yaml", Priority: 1, Targets: map[string]capacity.SLO{"meta/llama-3.1-8b": {ITL: 24, TTFT: 500}, "other": {ITL: 30}}},
				{Name: "Standard", Entry: "classes.yaml", Priority: 5, Targets: map[string]capacity.SLO{"meta/llama-3.1-8b": {ITL: 50, TTFT: 1000}}},
			},
		},
		"a class whose models count more": {
			data: map[string]string{"a": "{name: A, priority: 2, weight: 2.5, data: [{model: m, slo-itl: 24, slo-ttft: 500}]}"},
			want: []config.ServiceClass{{Name: "A", Entry: "a", Priority: 2, Weight: 2.5, Targets: targets}},
		},
		"models that saturation alone sizes": {
			data: map[string]string{"a": "{name: A, priority: 2, data: [{model: m, slo-itl: 24, slo-ttft: 500, capacity-only: true}, {model: other, slo-itl: 24, capacity-only: false}]}"},
			want: []config.ServiceClass{{Name: "A", Entry: "a", Priority: 2, Targets: map[string]capacity.SLO{"m": {ITL: 24, TTFT: 500}, "other": {ITL: 24}}, CapacityOnly: map[string]bool{"m": true}}},
		},
		"one of the models of a class that comes up for each": {
			data: map[string]string{"a": "[{name: A, priority: 2, model: m, slo-itl: 24}, {name: A, priority: 2, model: other, slo-itl: 24, capacity-only: true}]"},
			want: []config.ServiceClass{{Name: "A", Entry: "a", Priority: 2, Targets: map[string]capacity.SLO{"m": {ITL: 24}, "other": {ITL: 24}}, CapacityOnly: map[string]bool{"other": true}}},
		},
		"a promise of one latency alone": {
			data: map[string]string{"a": "{name: A, priority: 100, data: [{model: m, slo-tpot: 12.5}]}"},
			want: []config.ServiceClass{{Name: "A", Entry: "a", Priority: 100, Targets: map[string]capacity.SLO{"m": {ITL: 12.5}}}},
		},
		"priorities out of range are the least one": {
			data: map[string]string{
				"a": "{name: A, priority: 0, data: []}", "b": "{name: B, priority: 101, data: []}", "c": "{name: C, data: []}", "d": "{name: D, priority: -1e300, data: []}",
			},
			want: []config.ServiceClass{
				{Name: "A", Entry: "a", Priority: 100, Targets: map[string]capacity.SLO{}}, {Name: "B", Entry: "b", Priority: 100, Targets: map[string]capacity.SLO{}},
				{Name: "C", Entry: "c", Priority: 100, Targets: map[string]capacity.SLO{}}, {Name: "D", Entry: "d", Priority: 100, Targets: map[string]capacity.SLO{}},
			},
			warnings: []string{
				`entry "a": priority is 0, outside of 1 to 100, so it is 100`,
				`entry "b": priority is 101, outside of 1 to 100, so it is 100`,
				`entry "c": priority is missing, so it is 100: write 1, the most important, to 100`,
				`entry "d": priority is -1e+300, outside of 1 to 100, so it is 100`,
			},
		},
		"what has no effect is named": {
			data: map[string]string{"a": "{name: A, priority: 1, slo: 5, data: [{model: m, slo-ttx: 7}]}", "b": "{name: B, priority: 2}"},
			want: []config.ServiceClass{
				{Name: "A", Entry: "a", Priority: 1, Targets: map[string]capacity.SLO{"m": {}}},
				{Name: "B", Entry: "b", Priority: 2, Targets: map[string]capacity.SLO{}},
			},
			warnings: []string{
				`entry "a", data[0]: model "m" has no SLO here: set slo-ttft, slo-tpot or both`,
				`entry "a", data[0]: slo-ttx has no effect: correct its name or remove it`,
				`entry "a": slo has no effect: correct its name or remove it`,
				`entry "b": the class lists no model: list them in data`,
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, warnings, err := config.ParseServiceClasses("classes", test.data)
			require.NoError(t, err)
			assert.Equal(t, test.want, got.Classes)
			assert.Equal(t, test.warnings, warnings)
		})
	}
}

func TestParseServiceClassesErrors(t *testing.T) {
	tests := map[string]struct {
		data map[string]string
		want []string
	}{
		"no YAML":                  {map[string]string{"a": "a: b: c"}, []string{`service classes: entry "a": `, "write it as YAML, one field: value per line"}},
		"nothing":                  {map[string]string{"a": ""}, []string{`entry "a": name is missing: name the service class`}},
		"a text for a class":       {map[string]string{"a": "Premium"}, []string{`entry "a": `}},
		"a name that is a number":  {map[string]string{"a": "{name: 7, data: []}"}, []string{`entry "a": name is 7: write a text, in quotes`}},
		"a priority in quotes":     {map[string]string{"a": "{name: A, priority: \"1\", data: []}"}, []string{`entry "a": priority is 1: write a number, without quotes`}},
		"no weight at all":         {map[string]string{"a": "{name: A, priority: 1, weight: 0, data: []}"}, []string{`entry "a": weight is 0: write a number above 0 and at most 100; 1 is that of a class without one`}},
		"a weight without measure": {map[string]string{"a": "{name: A, priority: 1, weight: 1e9, data: []}"}, []string{`entry "a": weight is 1e+09: write a number above 0 and at most 100`}},
		"half a priority":          {map[string]string{"a": "{name: A, priority: 1.5, data: []}"}, []string{`entry "a": priority is 1.5: write a whole number from 1, the most important, to 100`}},
		"models that are no list":  {map[string]string{"a": "{name: A, priority: 1, data: {model: m}}"}, []string{`entry "a": data is no list`}},
		"a model that is a text":   {map[string]string{"a": "{name: A, priority: 1, data: [m]}"}, []string{`entry "a", data[0]: is m: write fields such as model: name`}},
		"a target of no model":     {map[string]string{"a": "{name: A, priority: 1, data: [{slo-ttft: 5}]}"}, []string{`entry "a", data[0]: model is missing: name the model by its ID`}},
		"a latency below zero":     {map[string]string{"a": "{name: A, priority: 1, data: [{model: m, slo-ttft: -5}]}"}, []string{`entry "a", data[0]: slo-ttft is -5: write milliseconds, at least 0`}},
		"a latency with its unit":  {map[string]string{"a": "{name: A, priority: 1, data: [{model: m, slo-ttft: 5ms}]}"}, []string{`entry "a", data[0]: slo-ttft is 5ms: write a number of milliseconds, in digits alone, without quotes`}},
		"one latency by two names": {map[string]string{"a": "{name: A, priority: 1, data: [{model: m, slo-tpot: 5, slo-itl: 6}]}"}, []string{`entry "a", data[0]: slo-tpot and slo-itl are both given and mean the same: remove one`}},
		"two that have units":      {map[string]string{"a": "{name: A, priority: 1, data: [{model: m, slo-ttft: 0.5s, slo-itl: '20'}]}"}, []string{`entry "a", data[0]: slo-ttft is 0.5s: write a number of milliseconds, in digits alone, without quotes`, `entry "a", data[0]: slo-itl is 20: write a number of milliseconds, in digits alone, without quotes`}},
		"capacity-only is no yes":  {map[string]string{"a": `{name: A, priority: 1, data: [{model: m, slo-ttft: 5, capacity-only: "yes"}]}`}, []string{`entry "a", data[0]: capacity-only is yes: write true or false, without quotes`}},
		"models in two lists":      {map[string]string{"a": "{name: A, priority: 1, data: [{model: m, slo-ttft: 5}], modelTargets: []}"}, []string{`entry "a": data and modelTargets are both given: move all models to one of them`}},
		"a model twice":            {map[string]string{"a": "{name: A, priority: 1, data: [{model: m, slo-ttft: 5}, {model: m, slo-ttft: 5}]}"}, []string{`entry "a", data[1]: model "m" is listed twice: remove one`}},
		"two classes of one name": {map[string]string{"a": "{name: Premium, priority: 1, data: []}", "b": "{name: premium, priority: 2, data: []}"},
			[]string{`entry "b": service class "premium" is in entry "a" already: give one of them another name`}},
		"a class of two priorities": {map[string]string{"a": "[{name: A, model: m, priority: 1, slo-itl: 5}, {name: a, model: n, priority: 2, slo-itl: 5}]"},
			[]string{`entry "a", item[1]: service class "a" has another priority, weight or list of namespaces than in entry "a", item[0]: give it the same ones`}},
		"a model twice in one class": {map[string]string{"a": "[{name: A, model: m, priority: 1, slo-itl: 5}, {name: A, model: m, priority: 1, slo-itl: 6}]"},
			[]string{`entry "a", item[1]: model "m" is listed twice in service class "A": remove one`}},
		"one class in both forms": {map[string]string{"a": "[{name: A, model: m, priority: 1, slo-itl: 5}, {name: A, priority: 1, data: []}]"},
			[]string{`entry "a", item[1]: service class "A" is in entry "a", item[0] already`}},
		"two names of the first token": {map[string]string{"a": "[{name: A, model: m, priority: 1, slo-ttft: 5, slo-ttw: 6}]"},
			[]string{`entry "a", item[0]: slo-ttft and slo-ttw are both given and mean the same: remove one`}},
		"classes that are no list": {map[string]string{"a": "{serviceClasses: 5}"}, []string{`entry "a": serviceClasses is no list`}},
		"all that is wrong is named": {map[string]string{"a": "{priority: 1.5, data: [{}]}", "b": "["},
			[]string{`entry "a": name is missing`, `entry "a": priority is 1.5`, `entry "a", data[0]: model is missing`, `entry "b"`}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, _, err := config.ParseServiceClasses("classes", test.data)
			require.Error(t, err)
			assert.Zero(t, got)
			for _, want := range test.want {
				assert.ErrorContains(t, err, want)
			}
		})
	}
}

func FuzzParseServiceClasses(f *testing.F) {
	f.Add("name: A\npriority: 1\ndata:\n- model: m\n  slo-tpot: 5\n", `{"serviceClasses": [{"name": "B", "modelTargets": [{"model": "m", "slo-itl": 5}]}]}`, "m", "a")
	f.Add("name: A\npriority: 1e400\ndata: [null, 5, {}]\n", "serviceClasses: [[], {name: {}}]", "", "")
	f.Add("priority: .nan", "data: {a: [b]}", "m", "service-classes-config")
	f.Fuzz(func(t *testing.T, one, other, model, class string) {
		classes, _, err := config.ParseServiceClasses("classes", map[string]string{"a": one, "b.yaml": other})
		if err != nil {
			assert.Zero(t, classes)
			return
		}
		for _, references := range [][]config.ClassReference{nil, {{Class: class}, {Class: "A", Key: model}}} {
			promise := config.Dynamic{ServiceClasses: classes}.Promise(decision.ModelKey{Namespace: "chat", ID: model}, references)
			assert.True(t, promise.Priority >= 1 && promise.Priority <= 100, "%d", promise.Priority)
			assert.True(t, promise.SLO.TTFT >= 0 && promise.SLO.ITL >= 0)
			assert.True(t, promise.Problem == "" || promise.SLO == capacity.SLO{})
		}
	})
}
