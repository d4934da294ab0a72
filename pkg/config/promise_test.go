package config_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/config"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

func TestPromise(t *testing.T) {
	classes, _, err := config.ParseServiceClasses("blue-classes", map[string]string{
		"premium.yaml": "{name: Premium, priority: 1, data: [{model: chat, slo-tpot: 24, slo-ttft: 500}, {model: both, slo-tpot: 30, slo-ttft: 600}, {model: gold-chat, slo-ttft: 100}, {model: cheap-chat, slo-tpot: 24, slo-ttft: 500, capacity-only: true}]}",
		"free.yaml":    "{name: Free, priority: 10, weight: 2, data: [{model: batch, slo-ttft: 9000}, {model: both, slo-ttft: 8000}]}",
		"team.json": `{"serviceClasses": [
			{"name": "Team", "priority": 5, "modelTargets": [{"model": "chat-2", "slo-itl": 50}]},
			{"name": "Guest", "priority": 7, "modelTargets": [{"model": "chat-3", "slo-itl": 60}]}]}`,
	})
	require.NoError(t, err)
	settings := config.Dynamic{ServiceClasses: classes}
	reference := func(variant, class, key string) config.ClassReference {
		return config.ClassReference{Variant: variant, Class: class, Key: key}
	}
	premium := decision.Promise{Class: "Premium", Priority: 1, SLO: capacity.SLO{TTFT: 500, ITL: 24}}
	tests := map[string]struct {
		model      string
		references []config.ClassReference
		want       decision.Promise
	}{
		"the class that lists the model":      {model: "chat", want: premium},
		"a model that saturation alone sizes": {model: "cheap-chat", want: decision.Promise{Class: "Premium", Priority: 1, SLO: capacity.SLO{TTFT: 500, ITL: 24}, CapacityOnly: true}},
		"or by its key alone":                 {model: "chat", references: []config.ClassReference{reference("a", "premium", "cheap-chat")}, want: decision.Promise{Class: "Premium", Priority: 1, SLO: capacity.SLO{TTFT: 500, ITL: 24}, CapacityOnly: true}},
		"variants that disagree about the mode": {model: "chat", references: []config.ClassReference{reference("a", "premium", ""), reference("b", "premium", "cheap-chat")}, want: decision.Promise{Class: "Premium", Priority: 1,
			Problem: "variant a is of Premium (priority 1, TTFT 500 ms, ITL 24 ms) and variant b of Premium (priority 1, TTFT 500 ms, ITL 24 ms, capacity-only): give all variants of model chat the same sloClassRef"}},
		"a model in no class":                   {model: "other", want: decision.Promise{Priority: 100}},
		"the most important of several classes": {model: "both", want: decision.Promise{Class: "Premium", Priority: 1, SLO: capacity.SLO{TTFT: 600, ITL: 30}}},
		"a class by name":                       {model: "both", references: []config.ClassReference{reference("a", "Free", "")}, want: decision.Promise{Class: "Free", Priority: 10, Weight: 2, SLO: capacity.SLO{TTFT: 8000}}},
		"in whatever case":                      {model: "chat", references: []config.ClassReference{reference("a", "PREMIUM", "")}, want: premium},
		"by the key in the class":               {model: "other", references: []config.ClassReference{reference("a", "premium", "chat")}, want: premium},
		"the key counts before the model":       {model: "chat", references: []config.ClassReference{reference("a", "premium", "gold-chat")}, want: decision.Promise{Class: "Premium", Priority: 1, SLO: capacity.SLO{TTFT: 100}}},
		"a key that is no entry leaves it to the model, as in older versions": {model: "chat", references: []config.ClassReference{reference("a", "premium", "opt-125m")}, want: premium},
		"the published ConfigMap and a key of it":                             {model: "chat", references: []config.ClassReference{reference("a", "service-classes-config", "premium.yaml")}, want: premium},
		"the ConfigMap by its own name, the key without its extension":        {model: "chat", references: []config.ClassReference{reference("a", "blue-classes", "premium")}, want: premium},
		"the ConfigMap without a key":                                         {model: "chat", references: []config.ClassReference{reference("a", "service-classes-config", "")}, want: premium},
		"a key of several classes":                                            {model: "chat-3", references: []config.ClassReference{reference("a", "service-classes-config", "team.json")}, want: decision.Promise{Class: "Guest", Priority: 7, SLO: capacity.SLO{ITL: 60}}},
		"a key of the ConfigMap that is not there": {model: "chat", references: []config.ClassReference{reference("a", "service-classes-config", "gold")}, want: decision.Promise{Priority: 100,
			Problem: `variant a names entry "gold" of ConfigMap service-classes-config, which holds no service class: there are Premium, Team, Guest, Free`}},
		"an unknown class": {model: "chat", references: []config.ClassReference{reference("a", "Gold", "")}, want: decision.Promise{Priority: 100,
			Problem: `variant a names service class "Gold", which does not exist: there are Premium, Team, Guest, Free`}},
		"a class that does not list the model": {model: "batch", references: []config.ClassReference{reference("a", "premium", "")}, want: decision.Promise{Class: "Premium", Priority: 1,
			Problem: "service class Premium, which variant a names, does not list model batch"}},
		"nor the key": {model: "batch", references: []config.ClassReference{reference("a", "premium", "k")}, want: decision.Promise{Class: "Premium", Priority: 1,
			Problem: "service class Premium, which variant a names, lists neither k nor model batch"}},
		"variants that agree": {model: "chat", references: []config.ClassReference{reference("a", "premium", ""), reference("b", "Premium", "chat")}, want: premium},
		"variants that disagree about the class": {model: "both", references: []config.ClassReference{reference("a", "free", ""), reference("b", "premium", "")}, want: decision.Promise{Class: "Premium", Priority: 1,
			Problem: "variant a is of Free (priority 10, TTFT 8000 ms, ITL 0 ms) and variant b of Premium (priority 1, TTFT 600 ms, ITL 30 ms): give all variants of model both the same sloClassRef"}},
		"variants that disagree about the entry": {model: "chat", references: []config.ClassReference{reference("a", "premium", ""), reference("b", "premium", "gold-chat")}, want: decision.Promise{Class: "Premium", Priority: 1,
			Problem: "variant a is of Premium (priority 1, TTFT 500 ms, ITL 24 ms) and variant b of Premium (priority 1, TTFT 100 ms, ITL 0 ms): give all variants of model chat the same sloClassRef"}},
		"a known and an unknown class": {model: "chat", references: []config.ClassReference{reference("a", "Gold", ""), reference("b", "premium", "")}, want: decision.Promise{Class: "Premium", Priority: 1,
			Problem: `variant a names service class "Gold", which does not exist: there are Premium, Team, Guest, Free`}},
		"two unknown classes are both named": {model: "chat", references: []config.ClassReference{reference("a", "Gold", ""), reference("b", "Silver", "")}, want: decision.Promise{Priority: 100,
			Problem: `variant a names service class "Gold", which does not exist: there are Premium, Team, Guest, Free; variant b names service class "Silver", which does not exist: there are Premium, Team, Guest, Free`}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, test.want, settings.Promise(decision.ModelKey{Namespace: "chat", ID: test.model}, test.references))
		})
	}
}

func TestPromiseWithoutServiceClasses(t *testing.T) {
	var settings config.Dynamic
	assert.Equal(t, decision.Promise{Priority: decision.LeastPriority}, settings.Promise(decision.ModelKey{Namespace: "chat", ID: "m"}, nil))
	got := settings.Promise(decision.ModelKey{Namespace: "chat", ID: "m"}, []config.ClassReference{{Variant: "a", Class: "premium"}})
	assert.Equal(t, `variant a names service class "premium", which does not exist: there are no service classes`, got.Problem)
}

func TestManyClassesAreNotAllNamed(t *testing.T) {
	data := map[string]string{}
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g"} {
		data[name] = "{name: " + name + ", priority: 1, data: []}"
	}
	classes, _, err := config.ParseServiceClasses("classes", data)
	require.NoError(t, err)
	got := config.Dynamic{ServiceClasses: classes}.Promise(decision.ModelKey{Namespace: "chat", ID: "m"}, []config.ClassReference{{Variant: "v", Class: "x"}})
	assert.Contains(t, got.Problem, "there are a, b, c, d, e, 2 more")
}

// A class that names namespaces is for their objects alone: whoever may write objects elsewhere cannot
// claim its priority, by its name, by the model, or by the ConfigMap.
func TestAClassOfOtherNamespaces(t *testing.T) {
	classes, warnings, err := config.ParseServiceClasses("classes", map[string]string{
		"gold.yaml": "{name: Gold, priority: 1, namespaces: [search, chat, chat], data: [{model: m, slo-ttft: 500}]}",
		"all.yaml":  "{name: All, priority: 50, data: [{model: m, slo-ttft: 900}]}",
	})
	require.NoError(t, err)
	assert.Empty(t, warnings)
	settings := config.Dynamic{ServiceClasses: classes}
	gold := decision.Promise{Class: "Gold", Priority: 1, SLO: capacity.SLO{TTFT: 500}}
	all := decision.Promise{Class: "All", Priority: 50, SLO: capacity.SLO{TTFT: 900}}
	refused := decision.Promise{Priority: decision.LeastPriority, Problem: `variant a names service class "gold", which is not for its namespace: there are All`}
	noEntry := decision.Promise{Priority: decision.LeastPriority, Problem: `variant a names entry "gold" of ConfigMap classes, which holds no service class: there are All`}
	for name, c := range map[string]struct {
		reference   *config.ClassReference
		inside, out decision.Promise
	}{
		"by the model":              {nil, gold, all},
		"by its name":               {&config.ClassReference{Variant: "a", Class: "gold"}, gold, refused},
		"by an entry":               {&config.ClassReference{Variant: "a", Class: "classes", Key: "gold"}, gold, noEntry},
		"by the ConfigMap":          {&config.ClassReference{Variant: "a", Class: "classes"}, gold, all},
		"a class that is for all":   {&config.ClassReference{Variant: "a", Class: "All"}, all, all},
		"by a key in another class": {&config.ClassReference{Variant: "a", Class: "gold", Key: "m"}, gold, refused},
	} {
		var references []config.ClassReference
		if c.reference != nil {
			references = append(references, *c.reference)
		}
		for _, namespace := range []string{"chat", "search"} {
			assert.Equal(t, c.inside, settings.Promise(decision.ModelKey{Namespace: namespace, ID: "m"}, references), "%s in %s", name, namespace)
		}
		assert.Equal(t, c.out, settings.Promise(decision.ModelKey{Namespace: "elsewhere", ID: "m"}, references), name)
	}
}

func TestNamespacesOfAClassThatAreNone(t *testing.T) {
	for _, text := range []string{"[]", "chat", "[1]", "[Chat]", "[chat, '']", "{chat: true}"} {
		_, _, err := config.ParseServiceClasses("classes", map[string]string{"gold": "{name: Gold, priority: 1, namespaces: " + text + ", data: [{model: m, slo-ttft: 500}]}"})
		require.ErrorContains(t, err, "list the names of the namespaces whose objects may have the class, or leave it out for all", text)
	}
	_, _, err := config.ParseServiceClasses("classes", map[string]string{"gold": "[{name: Gold, priority: 1, namespaces: [a], model: m, slo-ttft: 500}, {name: Gold, priority: 1, model: n, slo-ttft: 500}]"})
	require.ErrorContains(t, err, "has another priority, weight or list of namespaces")
}
