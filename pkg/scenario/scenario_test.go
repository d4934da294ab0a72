package scenario_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/replay"
	"llmd.ai/workload-variant-autoscaler/pkg/scenario"
	"llmd.ai/workload-variant-autoscaler/pkg/simulation"
	"llmd.ai/workload-variant-autoscaler/pkg/workload"
)

// small is the least that a scenario says.
const small = `
nodes:
- {name: gpu, count: 2, accelerator: H100, devices: 8}
prices: {H100: 7}
models:
- id: llama
  slo: {ttft: 2000, itl: 50}
  variants:
  - name: llama-h100
    accelerator: H100
    acceleratorCount: 4
    profile: {base: 10}
`

// with changes the text and fails when there is nothing to change.
func with(t *testing.T, text string, pairs ...string) []byte {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		require.Contains(t, text, pairs[i])
		text = strings.Replace(text, pairs[i], pairs[i+1], 1)
	}
	return []byte(text)
}

func parse(t *testing.T, data []byte) *replay.Scenario {
	t.Helper()
	s, err := scenario.Parse(data, scenario.Options{})
	require.NoError(t, err)
	return s
}

func TestWhatASmallFileMeans(t *testing.T) {
	s := parse(t, []byte(small))
	require.Len(t, s.Cluster.Nodes, 2)
	n := s.Cluster.Nodes[1]
	assert.Equal(t, "gpu-1", n.Name)
	assert.Equal(t, n.Allocatable, n.Free)
	assert.Equal(t, []int{8, 110}, []int{n.Free.Devices, n.Free.Pods})
	slots, err := s.Cluster.Slots(s.Models[0].Variants[0].Request)
	require.NoError(t, err)
	assert.Equal(t, 4, slots)
	m := s.Models[0]
	assert.Equal(t, []any{"default", "llama", capacity.SLO{TTFT: 2000, ITL: 50}}, []any{m.Namespace, m.ID, m.SLO})
	v := m.Variants[0]
	assert.Equal(t, capacity.Cost(28), v.Cost)
	assert.Equal(t, serving.Profile{Base: 10}, v.Profile)
	assert.Equal(t, v.Profile, v.Given, "the autoscaler has learned it before")
	assert.Equal(t, -1, v.Initial)
	assert.Equal(t, decision.DefaultVariantPolicy(), v.Policy)
	assert.Equal(t, replay.Collection{Scrape: 15 * time.Second, Window: time.Minute}, s.Collection)
	assert.Equal(t, 30*time.Second, s.Drain)
	assert.Equal(t, 0.1, s.Variation)
	policy := s.Policy
	assert.Equal(t, decision.Promise{Priority: decision.LeastPriority, SLO: m.SLO}, policy.PromiseTo(decision.ModelKey{Namespace: "default", ID: "llama"}))
	policy.Promises, policy.IdleByModel, policy.Variants = nil, nil, nil
	assert.Equal(t, decision.DefaultPolicy(), policy, "that of a manager without configuration")
}

func TestWhatIsWrongIsNamedWithItsPlace(t *testing.T) {
	const variants = "\n  variants:\n  - name: llama-h100\n    accelerator: H100\n    acceleratorCount: 4\n    profile: {base: 10}\n"
	for name, c := range map[string]struct {
		change []string
		says   string
	}{
		"no YAML":                    {[]string{"prices: {H100: 7}", "prices: {H100"}, "line"},
		"a list":                     {[]string{small, "[1, 2]"}, "the file is a list: expected the keys name, nodes"},
		"nothing":                    {[]string{small, ""}, "nodes has no node: expected at least one"},
		"a key twice":                {[]string{"prices: {H100: 7}", "prices: {H100: 7}\nprices: {H100: 8}"}, `line 5: key "prices" already set`},
		"an unknown key":             {[]string{"    acceleratorCount: 4", "    acceleratorCont: 4"}, "models[0].variants[0].acceleratorCont is not a key: expected one of name, accelerator"},
		"an unknown key of a rule":   {[]string{"profile: {base: 10}", "profile: {base: 10}\n    behavior: {scaleDown: {stabilisation: 1}}"}, "models[0].variants[0].behavior.scaleDown.stabilisation is not a key: expected one of stabilizationWindowSeconds"},
		"a text for a number":        {[]string{"devices: 8", "devices: eight"}, `nodes[0].devices is "eight": expected a whole number`},
		"half a device":              {[]string{"devices: 8", "devices: 7.5"}, "nodes[0].devices is 7.5: expected a whole number"},
		"a number for a text":        {[]string{"id: llama", "id: 7"}, "models[0].id is 7: expected a text, in quotes"},
		"a map for a list":           {[]string{"- {name: gpu,", "  {name: gpu,"}, "nodes is a map: expected a list"},
		"a text for a truth":         {[]string{"{base: 10}", "{base: 10}\n    learn: 'yes'"}, `models[0].variants[0].learn is "yes": expected true or false`},
		"a quantity":                 {[]string{"devices: 8", "devices: 8, cpu: many"}, `nodes[0].cpu is "many": `},
		"no such groups":             {[]string{"acceleratorCount: 4", "acceleratorCount: 4\n    nodeGroups: [gpu, cpu]"}, `models[0].variants[0].nodeGroups[1] is "cpu": expected one of the node groups gpu`},
		"traffic like nothing":       {[]string{"  slo:", "  traffic: {like: none, mean: 1}\n  slo:"}, `models[0].traffic.like is "none": expected one of code, chat`},
		"traffic without a rate":     {[]string{"  slo:", "  traffic: {like: chat}\n  slo:"}, "models[0].traffic: the mean is 0 requests per second; expected a number above 0"},
		"traffic of no length":       {[]string{"prices:", "length: 3s\nprices:"}, "length is 3s: expected from 1m"},
		"traffic of one model alone": {[]string{"  slo:", "  traffic: {like: chat, mean: 1}\n  slo:", "prices:", "length: 1h\nprices:", "{base: 10}\n", "{base: 10}\n- {id: other, slo: {itl: 1}, variants: [{name: v, accelerator: H100, acceleratorCount: 1, profile: {base: 1}}]}\n"}, "models[1].traffic is missing: expected the traffic of every model, or of none"},
		"learning of half a minute":  {[]string{"prices:", "learning: 30s\nprices:"}, "learning is 30s: expected whole minutes"},
		"learning to the end":        {[]string{"  slo:", "  traffic: {like: chat, mean: 1}\n  slo:", "prices:", "learning: 24h\nprices:"}, "learning is 24h0m0s: expected less than the length, 24h0m0s"},
		"an event at no time":        {[]string{"prices:", "events: [{what: fail, nodes: [gpu]}]\nprices:"}, "events[0].at is missing: expected the time from the beginning"},
		"an event of nothing":        {[]string{"prices:", "events: [{at: 1h, nodes: [gpu]}]\nprices:"}, `events[0].what is "": expected cordon, drain, fail or reclaim`},
		"an event of nobody":         {[]string{"prices:", "events: [{at: 1h, what: fail}]\nprices:"}, "events[0].nodes is missing: expected names of nodes"},
		"an event elsewhere":         {[]string{"prices:", "events: [{at: 1h, what: fail, nodes: [gpu-0, gpu-7]}]\nprices:"}, `events[0].nodes[1] is "gpu-7": expected the name of a node of the cluster, or of a group`},
		"notice of a failure":        {[]string{"prices:", "events: [{at: 1h, what: fail, nodes: [gpu], notice: 1m}]\nprices:"}, "events[0].notice goes with reclaim only: expected none"},
		"copies in no time":          {[]string{"prices:", "rateSpread: 500ms\nprices:"}, "rateSpread: the copies of a request are spread over 500ms; expected from 1s to 1h0m0s"},
		"a duration":                 {[]string{"prices:", "drain: 30\nprices:"}, "drain is 30: expected a duration with its unit, such as 15s"},
		"no number of a price":       {[]string{"H100: 7", "H100: cheap"}, `prices.H100 is "cheap": expected a number`},
		"a negative price":           {[]string{"H100: 7", "H100: -7"}, "cost is -7: write a number of at least 0"},
		"a price of nothing":         {[]string{"H100: 7", "GPU: 7"}, `prices: accelerator prices: entry "GPU": its name is that of no accelerator`},
		"no price":                   {[]string{"H100: 7", "H200: 7"}, "models[0].variants[0].variantCost is missing, and there is no price of H100: expected one of both"},
		"both prices and lists":      {[]string{"prices:", "priceLists: {a: {H100: 1}}\nprices:"}, "prices and priceLists are both given"},
		"which of two lists":         {[]string{"prices: {H100: 7}", "priceLists: {a: {H100: 1}, b: {H100: 2}}"}, "priceLists has a, b: expected one to be chosen with --prices or the key priceList"},
		"a list that is not there":   {[]string{"prices: {H100: 7}", "priceList: c\npriceLists: {a: {H100: 1}, b: {H100: 2}}"}, `priceList is "c": expected one of a, b`},
		"nodes and clusters":         {[]string{"prices:", "clusters: {a: {nodes: []}}\nprices:"}, "nodes and clusters are both given"},
		"a group without a name":     {[]string{"name: gpu, ", ""}, "nodes[0].name is missing"},
		"two groups of one name":     {[]string{"prices:", "- {name: gpu}\nprices:"}, `nodes[1].name is "gpu", as that of another group`},
		"no accelerator":             {[]string{"accelerator: H100, devices", "devices"}, `nodes[0].accelerator is "": expected the type`},
		"no devices":                 {[]string{", devices: 8", ""}, "nodes[0].devices is missing: expected how many H100"},
		"a negative count":           {[]string{"count: 2", "count: -2"}, "nodes[0].count is -2"},
		"too many nodes":             {[]string{"count: 2", "count: 1000000"}, "there are 1000000 nodes: expected at most 100000"},
		"more used than there":       {[]string{"devices: 8", "devices: 8, used: [3, 9]"}, "nodes[0].used[1] is 9: expected from 0 to the node's 8 devices"},
		"a share without its sign":   {[]string{"devices: 8", "devices: 8, busy: 0.85"}, "nodes[0].busy is 0.85: expected a share from 0% to 100%, such as 85%"},
		"too large a share":          {[]string{"devices: 8", "devices: 8, busy: 101%"}, "nodes[0].busy is \"101%\": expected a share"},
		"used and busy":              {[]string{"devices: 8", "devices: 8, busy: 10%, used: [1]"}, "nodes[0].busy and used are both given"},
		"no model":                   {[]string{"models:\n- id: llama\n  slo: {ttft: 2000, itl: 50}" + variants, ""}, "models is missing"},
		"no id":                      {[]string{"id: llama\n  slo", "slo"}, "models[0].id is missing"},
		"no variant":                 {[]string{variants, ""}, "models[0].variants is missing"},
		"one model twice":            {[]string{"models:\n", "models:\n- id: llama\n  slo: {itl: 1}\n  variants: [{name: x, accelerator: H100, acceleratorCount: 1, profile: {base: 1}}]\n"}, `models[1].id is "llama", as that of another model of namespace default`},
		"one variant twice":          {[]string{"variants:\n", "variants:\n  - {name: llama-h100, accelerator: H100, acceleratorCount: 1, profile: {base: 1}}\n"}, `models[0].variants[1].name is "llama-h100", as that of another variant of namespace default`},
		"no share":                   {[]string{"id: llama", "id: llama\n  share: 0"}, "models[0].share is 0: expected above 0"},
		"no promise":                 {[]string{"  slo: {ttft: 2000, itl: 50}\n", ""}, "models[0].slo is missing, and no service class lists model llama"},
		"an empty promise":           {[]string{"{ttft: 2000, itl: 50}", "{ttft: 0}"}, "models[0].slo is ttft 0 and itl 0"},
		"an unknown class":           {[]string{"  slo: {ttft: 2000, itl: 50}\n", "", "{base: 10}", "{base: 10}\n    sloClassRef: {name: gold}"}, `models[0]: variant llama-h100 names service class "gold", which does not exist`},
		"a wrong class":              {[]string{"prices:", "serviceClasses: [{name: gold, priority: 1.5, data: [{model: m, slo-ttft: 1}]}]\nprices:"}, "serviceClasses: service classes: entry \"serviceClasses\", serviceClasses[0]: priority is 1.5"},
		"a class without effect":     {[]string{"prices:", "serviceClasses: [{name: gold, priority: 1, color: red, data: [{model: m, slo-ttft: 1}]}]\nprices:"}, "color has no effect"},
		"no name":                    {[]string{"- name: llama-h100\n    accelerator", "- accelerator"}, "models[0].variants[0].name is missing"},
		"no accelerator of a one":    {[]string{"    accelerator: H100\n", ""}, `models[0].variants[0].accelerator is "": expected the type`},
		"no count":                   {[]string{"    acceleratorCount: 4\n", ""}, "models[0].variants[0].acceleratorCount is 0"},
		"no profile":                 {[]string{"    profile: {base: 10}\n", ""}, "models[0].variants[0].profile is missing"},
		"a profile without a base":   {[]string{"{base: 10}", "{perRequest: 1}"}, "models[0].variants[0].profile.base is 0: expected the milliseconds"},
		"a share of more than all":   {[]string{"{base: 10}", "{base: 10, prefixHits: 1}"}, "models[0].variants[0].profile.prefixHits is 1: expected a share of at least 0 and below 1"},
		"a negative time":            {[]string{"{base: 10}", "{base: 10, perPrefillToken: -1}"}, "models[0].variants[0].profile.perPrefillToken is -1"},
		"half a published profile":   {[]string{"{base: 10}", "{base: 10}\n    variantProfile: {perfParms: {decodeParms: {alpha: '1'}}}"}, "models[0].variants[0].variantProfile.perfParms.decodeParms.beta is missing"},
		"a profile without quotes":   {[]string{"{base: 10}", "{base: 10}\n    variantProfile: {perfParms: {decodeParms: {alpha: 1}}}"}, "models[0].variants[0].variantProfile.perfParms.decodeParms.alpha is 1: expected a text, in quotes"},
		"a cost that is none":        {[]string{"{base: 10}", "{base: 10}\n    variantCost: much"}, `models[0].variants[0].variantCost is "much"`},
		"min above max":              {[]string{"{base: 10}", "{base: 10}\n    minReplicas: 3\n    maxReplicas: 2"}, "models[0].variants[0].minReplicas (3) is above models[0].variants[0].maxReplicas (2)"},
		"no replica at most":         {[]string{"{base: 10}", "{base: 10}\n    maxReplicas: 0"}, "models[0].variants[0].maxReplicas is 0: expected from 1 to 100000"},
		"a slip of the pen":          {[]string{"{base: 10}", "{base: 10}\n    maxReplicas: 100001"}, "models[0].variants[0].maxReplicas is 100001: expected from 1 to 100000, or none for no bound"},
		"too large a minimum":        {[]string{"{base: 10}", "{base: 10}\n    minReplicas: 100001"}, "models[0].variants[0].minReplicas is 100001: expected from 0 to 100000"},
		"too many at the start":      {[]string{"{base: 10}", "{base: 10}\n    initialReplicas: 100001"}, "models[0].variants[0].initialReplicas is 100001: expected from 0 to 100000"},
		"no weight":                  {[]string{"{base: 10}", "{base: 10}\n    weight: 0"}, "models[0].variants[0].weight is 0: expected above 0"},
		"less than no replica":       {[]string{"{base: 10}", "{base: 10}\n    initialReplicas: -1"}, "models[0].variants[0].initialReplicas is -1"},
		"a window above the bound":   {[]string{"{base: 10}", "{base: 10}\n    behavior: {scaleDown: {stabilizationWindowSeconds: 3601}}"}, "models[0].variants[0].behavior.scaleDown.stabilizationWindowSeconds is 3601: expected from 0 to 3600"},
		"a period of nothing":        {[]string{"{base: 10}", "{base: 10}\n    behavior: {scaleUp: {policies: [{type: Pods, value: 1, periodSeconds: 0}]}}"}, "models[0].variants[0].behavior.scaleUp.policies[0].periodSeconds is 0"},
		"a type of policy":           {[]string{"{base: 10}", "{base: 10}\n    behavior: {scaleUp: {policies: [{type: Share, value: 1, periodSeconds: 1}]}}"}, `models[0].variants[0].behavior.scaleUp.policies[0].type is "Share"`},
		"larger than every node":     {[]string{"acceleratorCount: 4", "acceleratorCount: 16"}, "models[0].variants[0]: no node has room for a replica of llama-h100 even without other work"},
		"a setting that is none":     {[]string{"prices:", "configuration: {WVA_LIMITED: true}\nprices:"}, "configuration.WVA_LIMITED is not a setting"},
		"a setting's value":          {[]string{"prices:", "configuration: {GLOBAL_OPT_INTERVAL: 60}\nprices:"}, `GLOBAL_OPT_INTERVAL in the scenario is "60": write a duration with its unit`},
		"a window twice":             {[]string{"prices:", "configuration: {PROMETHEUS_METRICS_WINDOW: 30s}\ncollection: {window: 60s}\nprices:"}, "collection.window and configuration.PROMETHEUS_METRICS_WINDOW (30s) are both given"},
		"too rare scrapes":           {[]string{"prices:", "collection: {scrape: 31s}\nprices:"}, "collection.scrape is 31s: expected whole seconds, at least 1s and at most half of the window (1m0s)"},
		"rounds of parts":            {[]string{"prices:", "configuration: {GLOBAL_OPT_INTERVAL: 7500ms}\nprices:"}, "configuration.GLOBAL_OPT_INTERVAL is 7.5s: expected whole seconds"},
		"scrapes of parts":           {[]string{"prices:", "collection: {scrape: 1500ms}\nprices:"}, "collection.scrape is 1.5s: expected whole seconds"},
		"wild start-ups":             {[]string{"prices:", "startupVariation: 3\nprices:"}, "startupVariation is 3"},
		"a threshold":                {[]string{"prices:", "saturation: {default: {kvCacheThreshold: 8}}\nprices:"}, "saturation: saturation thresholds: entry \"default\": kvCacheThreshold is 8"},
		"a threshold without effect": {[]string{"prices:", "saturation: {default: {kvCache: 0.8}}\nprices:"}, "kvCache has no effect"},
		"thresholds that are none":   {[]string{"prices:", "saturation: {default: 8}\nprices:"}, "saturation.default is 8: expected a map of fields"},
		"a cluster of none":          {[]string{"prices:", "cluster: x\nprices:"}, `cluster is "x", and the scenario has no clusters to choose from: leave it out`},
		"a price list of none":       {[]string{"prices:", "priceList: x\nprices:"}, `priceList is "x", and the scenario has no priceLists to choose from: leave it out`},
		"a retention":                {[]string{"prices:", "scaleToZero: {default: {retention_period: 10}}\nprices:"}, "retention_period is 10: write a duration"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := scenario.Parse(with(t, small, c.change...), scenario.Options{})
			require.ErrorContains(t, err, c.says)
			assert.NotContains(t, err.Error(), "\n", "one line")
		})
	}
}

// held is how many devices other work holds, by node.
func held(s *replay.Scenario) []int {
	var held []int
	for _, n := range s.Cluster.Nodes {
		held = append(held, n.Allocatable.Devices-n.Free.Devices)
	}
	return held
}

func TestOtherWork(t *testing.T) {
	for name, c := range map[string]struct {
		group string
		held  []int
	}{
		"none":                            {"count: 2", []int{0, 0}},
		"the same on every node":          {"count: 3, used: [3]", []int{3, 3, 3}},
		"a list that starts again":        {"count: 5, used: [8, 6]", []int{8, 6, 8, 6, 8}},
		"full":                            {"count: 2, busy: 100%", []int{8, 8}},
		"idle":                            {"count: 2, busy: 0%", []int{0, 0}},
		"one hole in the whole group":     {"count: 4, busy: 75%", []int{0, 8, 8, 8}},
		"more to leave than holes can be": {"count: 2, busy: 10%", []int{0, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			s := parse(t, with(t, small, "count: 2", c.group))
			assert.Equal(t, c.held, held(s))
		})
	}
}

func TestBusyIsTheShareThatWasAskedForInHolesOfManySizes(t *testing.T) {
	for share := 0; share <= 100; share += 5 {
		for _, count := range []int{1, 3, 10, 64} {
			s := parse(t, with(t, small, "count: 2", fmt.Sprintf("count: %d, busy: %d%%", count, share)))
			sum := 0
			for _, n := range held(s) {
				assert.True(t, n >= 0 && n <= 8)
				sum += n
			}
			assert.Equal(t, int(math.Round(float64(share)/100*float64(8*count))), sum, "%d nodes, %d %%", count, share)
		}
	}
	holes := map[int]int{}
	for _, n := range held(parse(t, with(t, small, "count: 2", "count: 64, busy: 85%"))) {
		holes[8-n]++
	}
	assert.Equal(t, map[int]int{0: 43, 8: 5, 4: 5, 2: 5 + 1, 1: 5}, holes, "the last one has what is left")
}

func TestOtherWorkHoldsItsShareOfTheNode(t *testing.T) {
	s := parse(t, with(t, small, "devices: 8", "devices: 8, cpu: '16', memory: 64Gi, pods: 10, used: [4]"))
	n := s.Cluster.Nodes[0]
	assert.Equal(t, []int64{8000, 32 << 30, 6}, []int64{n.Free.MilliCPU, n.Free.MemoryBytes, int64(n.Free.Pods)})
	s = parse(t, with(t, small, "devices: 8", "devices: 8, cpu: '16'", "acceleratorCount: 4", "acceleratorCount: 4\n    cpu: 10"))
	slots, err := s.Cluster.Slots(s.Models[0].Variants[0].Request)
	require.NoError(t, err)
	assert.Equal(t, 2, slots, "the CPU of a node is enough for one")
}

func TestPriceListsAndClustersAreChosen(t *testing.T) {
	file := with(t, small, "prices: {H100: 7}", "priceList: dear\npriceLists: {dear: {H100: 7}, cheap: {H100: 2.5}}",
		"nodes:\n- {name: gpu, count: 2, accelerator: H100, devices: 8}",
		"cluster: one\nclusters:\n  one: {nodes: [{name: a, accelerator: H100, devices: 8}]}\n  two:\n    nodes: [{name: b, count: 2, accelerator: H100, devices: 8}]\n    configuration: {WVA_LIMITED_MODE: true}")
	for name, c := range map[string]struct {
		options scenario.Options
		cost    capacity.Cost
		nodes   int
		says    string
	}{
		"as the file says":       {scenario.Options{}, 28, 1, ""},
		"others":                 {scenario.Options{Prices: "cheap", Cluster: "two"}, 10, 2, ""},
		"prices not there":       {scenario.Options{Prices: "free"}, 0, 0, `--prices is "free": expected one of cheap, dear`},
		"a cluster not there":    {scenario.Options{Cluster: "three"}, 0, 0, `--cluster is "three": expected one of one, two`},
		"the name of the prices": {scenario.Options{Prices: "dear"}, 28, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := scenario.Parse(file, c.options)
			if c.says != "" {
				require.ErrorContains(t, err, c.says)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, c.cost, s.Models[0].Variants[0].Cost)
			assert.Len(t, s.Cluster.Nodes, c.nodes)
			assert.Equal(t, c.nodes == 2, s.Policy.Limited, "the second cluster brings a setting")
			assert.Equal(t, map[bool]string{true: "cheap", false: "dear"}[c.options.Prices == "cheap"], s.Prices)
		})
	}
	for change, says := range map[string]string{
		"{WVA_LIMITED: true}":          "clusters.two: configuration.WVA_LIMITED is not a setting",
		"{GLOBAL_OPT_INTERVAL: 60}":    `clusters.two: configuration: GLOBAL_OPT_INTERVAL in the scenario is "60": write a duration`,
		"{WVA_LIMITED_MODE: sometime}": "clusters.two: configuration: WVA_LIMITED_MODE",
	} {
		_, err := scenario.Parse(with(t, string(file), "{WVA_LIMITED_MODE: true}", change), scenario.Options{})
		require.ErrorContains(t, err, says, "a cluster that is not chosen")
	}
	_, err := scenario.Parse(with(t, string(file), "name: b, count: 2", "name: b, count: -2"), scenario.Options{})
	require.ErrorContains(t, err, "clusters.two.nodes[0].count is -2", "a cluster that is not chosen")
	for flag, o := range map[string]scenario.Options{"--prices": {Prices: "x"}, "--cluster": {Cluster: "x"}} {
		_, err := scenario.Parse([]byte(small), o)
		require.ErrorContains(t, err, flag+` is "x", and the scenario has no`)
	}
}

func TestTheConfigurationIsTheManagers(t *testing.T) {
	llama := decision.ModelKey{Namespace: "default", ID: "llama"}
	for name, c := range map[string]struct {
		text string
		of   func(*replay.Scenario) any
		want any
	}{
		"limited":    {"configuration: {WVA_LIMITED_MODE: 'true'}", func(s *replay.Scenario) any { return s.Policy.Limited }, true},
		"interval":   {"configuration: {GLOBAL_OPT_INTERVAL: 30s}", func(s *replay.Scenario) any { return s.Policy.Interval }, 30 * time.Second},
		"share":      {"configuration: {WVA_SLO_PERCENTILE: 0.95}", func(s *replay.Scenario) any { return s.Policy.Share }, 0.95},
		"horizon":    {"configuration: {WVA_SWITCH_HORIZON: 1h}", func(s *replay.Scenario) any { return s.Policy.Horizon }, time.Hour},
		"freshness":  {"configuration: {PROMETHEUS_METRICS_CACHE_FRESH_THRESHOLD: 20s}", func(s *replay.Scenario) any { return s.Policy.Freshness.Fresh }, 20 * time.Second},
		"deadline":   {"configuration: {WVA_STARTUP_DEADLINE: 5m}", func(s *replay.Scenario) any { return s.Policy.StartupDeadline }, 5 * time.Minute},
		"backlog":    {"configuration: {WVA_BACKLOG_DRAIN_TIME: 1m}", func(s *replay.Scenario) any { return s.Policy.Drain }, time.Minute},
		"the window": {"configuration: {PROMETHEUS_METRICS_WINDOW: 2m}", func(s *replay.Scenario) any { return []time.Duration{s.Policy.Window, s.Collection.Window} }, []time.Duration{2 * time.Minute, 2 * time.Minute}},
		"the window by its other name": {"collection: {window: 2m}", func(s *replay.Scenario) any { return []time.Duration{s.Policy.Window, s.Collection.Window} },
			[]time.Duration{2 * time.Minute, 2 * time.Minute}},
		"collection": {"collection: {scrape: 5s, gateway: true}", func(s *replay.Scenario) any { return s.Collection },
			replay.Collection{Scrape: 5 * time.Second, Window: time.Minute, Gateway: true}},
		"thresholds": {"saturation: {default: {kvCacheThreshold: 0.7}, x: {model_id: llama, namespace: default, queueLengthThreshold: 9}}",
			func(s *replay.Scenario) any {
				own := s.Policy.SaturationOf(llama)
				return []float64{s.Policy.Saturation.KVCacheThreshold, own.KVCacheThreshold, own.QueueLengthThreshold}
			}, []float64{0.7, 0.7, 9}},
		"sleep": {"scaleToZero: {x: {model_id: llama, enable_scale_to_zero: true, retention_period: 5m}}",
			func(s *replay.Scenario) any { return s.Policy.IdleOf(llama) }, decision.Idle{Enabled: true, Retention: 5 * time.Minute}},
		"sleep of all": {"configuration: {WVA_SCALE_TO_ZERO: true}", func(s *replay.Scenario) any { return s.Policy.IdleOf(llama).Enabled }, true},
		"rate spread":  {"rateSpread: 10s", func(s *replay.Scenario) any { return s.RateSpread }, 10 * time.Second},
		"learning":     {"learning: 2h", func(s *replay.Scenario) any { return s.Learning }, 2 * time.Hour},
		"events": {"events: [{at: 2h, what: reclaim, nodes: [gpu-1], for: 1h}, {at: 1h, what: fail, nodes: [gpu], for: 30m}, {at: 3h, what: cordon, nodes: [gpu-0]}, {at: 4h, what: drain, nodes: [gpu-0]}, {at: 5h, what: reclaim, nodes: [gpu-0], notice: 30s}]",
			func(s *replay.Scenario) any { return s.Events }, []simulation.NodeEvent{
				{At: time.Hour, Node: 0, Kind: simulation.Failed}, {At: time.Hour, Node: 1, Kind: simulation.Failed},
				{At: 90 * time.Minute, Node: 0, Kind: simulation.Restored}, {At: 90 * time.Minute, Node: 1, Kind: simulation.Restored},
				{At: 2 * time.Hour, Node: 1, Kind: simulation.Reclaimed, Notice: 2 * time.Minute},
				{At: 3 * time.Hour, Node: 0, Kind: simulation.Cordoned},
				{At: 3*time.Hour + 2*time.Minute, Node: 1, Kind: simulation.Restored},
				{At: 4 * time.Hour, Node: 0, Kind: simulation.Drained},
				{At: 5 * time.Hour, Node: 0, Kind: simulation.Reclaimed, Notice: 30 * time.Second},
			}},
		"drain":     {"drain: 1m", func(s *replay.Scenario) any { return s.Drain }, time.Minute},
		"variation": {"startupVariation: 0", func(s *replay.Scenario) any { return s.Variation }, 0.0},
		"name":      {"name: mine", func(s *replay.Scenario) any { return s.Name }, "mine"},
	} {
		t.Run(name, func(t *testing.T) {
			assert.NotEqual(t, c.want, c.of(parse(t, []byte(small))), "it makes a difference")
			assert.Equal(t, c.want, c.of(parse(t, []byte(small+c.text+"\n"))))
		})
	}
}

func TestSettingsThatOnlyARealManagerNeedsAreAccepted(t *testing.T) {
	s := parse(t, []byte(small+"configuration: {PROMETHEUS_BASE_URL: 'https://p', POD_NAMESPACE: x, LEADER_ELECT: true}\n"))
	assert.Equal(t, parse(t, []byte(small)).Policy, s.Policy)
}

func TestPromisesComeFromServiceClasses(t *testing.T) {
	const classes = `
serviceClasses:
- name: premium
  priority: 1
  data: [{model: llama, slo-ttft: 500, slo-tpot: 20}]
- name: free
  priority: 9
  modelTargets: [{model: other, slo-ttft: 5000}]
`
	file := with(t, small+classes, "  slo: {ttft: 2000, itl: 50}\n", "")
	llama := decision.ModelKey{Namespace: "default", ID: "llama"}
	s := parse(t, file)
	assert.Equal(t, capacity.SLO{TTFT: 500, ITL: 20}, s.Models[0].SLO)
	assert.Equal(t, decision.Promise{Class: "premium", Priority: 1, SLO: s.Models[0].SLO}, s.Policy.PromiseTo(llama))
	s = parse(t, with(t, string(file), "{base: 10}", "{base: 10}\n    sloClassRef: {name: free, key: other}"))
	assert.Equal(t, capacity.SLO{TTFT: 5000}, s.Models[0].SLO)
	s = parse(t, with(t, small+classes, "itl: 50", "itl: 51"))
	assert.Equal(t, capacity.SLO{TTFT: 2000, ITL: 51}, s.Models[0].SLO, "its own comes first")
}

func TestVariantsAreAsTheirObjectsSay(t *testing.T) {
	published := "\n    variantProfile: {maxBatchSize: 64, perfParms: {decodeParms: {alpha: '7.5', beta: '0.04'}, prefillParms: {gamma: '15', delta: '3.4e-4'}}}"
	given := serving.FourParameter{Alpha: 7.5, Beta: 0.04, Gamma: 15, Delta: 3.4e-4, MaxBatchSize: 64}.Profile()
	of := func(more string) replay.Variant {
		return parse(t, with(t, small, "\n    profile: {base: 10}", more)).Models[0].Variants[0]
	}
	v := of(`
    profile: {base: 1, perRequest: 2, perResidentToken: 3, perPrefillToken: 4, kvTokens: 5, batchLimit: 6, tokenBudget: 7}
    variantCost: "12.5"
    minReplicas: 1
    maxReplicas: 9
    initialReplicas: 3
    weight: 1.5
    cpu: 4
    memory: 1Gi
    behavior: {scaleDown: {stabilizationWindowSeconds: 60, tolerance: "0.1", selectPolicy: Min, policies: [{type: Percent, value: 10, periodSeconds: 60}]}}` + published)
	assert.Equal(t, serving.Profile{Base: 1, PerRequest: 2, PerResidentToken: 3, PerPrefillToken: 4, KVTokens: 5, BatchLimit: 6}, v.Profile)
	assert.Equal(t, 7, v.TokenBudget)
	assert.Equal(t, capacity.Cost(12.5), v.Cost, "over the price of its devices")
	assert.Equal(t, 3, v.Initial)
	assert.InDelta(t, 1.5, v.Weight, 0)
	assert.Equal(t, []int{1, 9}, []int{v.Policy.Min, v.Policy.Max})
	assert.Equal(t, decision.Behavior{
		Window: time.Minute, Tolerance: 0.1, Select: decision.SelectMin, Policies: []decision.RatePolicy{{Percent: 10, Period: time.Minute}},
	}, v.Policy.Down)
	assert.Equal(t, capacity.Shape{Accelerator: "H100", Devices: 4, Pods: 1, MilliCPU: 4000, MemoryBytes: 1 << 30}, v.Request.Shape)
	assert.Equal(t, given, v.Given)

	v = of("\n    profile: {base: 1}\n    learn: true")
	assert.Equal(t, serving.Profile{}, v.Given, "it is to be learned")
	v = of("\n    profile: {base: 1}" + published + "\n    learn: true")
	assert.Equal(t, serving.Profile{}, v.Given, "it is to be learned")
	v = of(published)
	assert.Equal(t, serving.Profile{Base: 7.5, PerRequest: 0.04, PerPrefillToken: 3.4e-4, BatchLimit: 64}, v.Profile, "the world is as the object says")
	assert.Equal(t, given, v.Given)
}

func TestModelsShareATrace(t *testing.T) {
	s := parse(t, with(t, small, "models:", "models:\n- {id: other, namespace: b, share: 3, slo: {itl: 9}, variants: [{name: llama-h100, accelerator: H100, acceleratorCount: 1, profile: {base: 1}}]}"))
	require.Len(t, s.Models, 2)
	assert.Equal(t, []any{"b", 3.0, 0.0}, []any{s.Models[0].Namespace, s.Models[0].Share, s.Models[1].Share})
	assert.Len(t, s.Policy.Variants, 2, "one name in two namespaces")
}

func TestTrafficOfAModel(t *testing.T) {
	s := parse(t, with(t, small, "  slo:", "  traffic: {like: code, mean: 5, peakToTrough: 4, period: 2h, peak: 30m}\n  slo:", "prices:", "length: 4h\nprices:"))
	load := *s.Models[0].Traffic
	assert.Equal(t, workload.Wave{Mean: 5, PeakToTrough: 4, Period: 2 * time.Hour, Peak: 30 * time.Minute}.Points(4*time.Hour), load.Rate)
	for _, e := range workload.Examples() {
		if e.Name == "code" {
			assert.Equal(t, e.Load.Input, load.Input)
			assert.Equal(t, e.Load.Output, load.Output)
			assert.Equal(t, e.Load.Variation, load.Variation)
		}
	}
	level := parse(t, with(t, small, "  slo:", "  traffic: {like: chat, mean: 5}\n  slo:"))
	for _, p := range level.Models[0].Traffic.Rate {
		assert.InDelta(t, 5, p.Rate, 1e-9)
	}
	assert.Equal(t, 24*time.Hour, level.Models[0].Traffic.Rate[len(level.Models[0].Traffic.Rate)-1].At)
	assert.Nil(t, parse(t, []byte(small)).Models[0].Traffic)
}

func TestNodeGroupsOfAVariant(t *testing.T) {
	s := parse(t, with(t, small, "devices: 8}", "devices: 8}\n- {name: gpu-spot, count: 1, accelerator: H100, devices: 8}", "acceleratorCount: 4", "acceleratorCount: 4\n    nodeGroups: [gpu-spot]"))
	request := s.Models[0].Variants[0].Request
	slots, err := s.Cluster.Slots(request)
	require.NoError(t, err)
	assert.Equal(t, 2, slots, "two on the one node")
	assert.Contains(t, s.Cluster.Explain(request).String(), "2 H100 nodes refuse it")
}

func TestPrefixCaching(t *testing.T) {
	v := parse(t, with(t, small, "{base: 10}", "{base: 10, perPrefillToken: 0.04, prefixCache: true, prefixHits: 0.25}")).Models[0].Variants[0]
	assert.True(t, v.PrefixCache)
	assert.InDelta(t, 0.25, v.PrefixHits, 0)
	assert.InDelta(t, 0.04, float64(v.Profile.PerPrefillToken), 1e-12, "the engine finds by itself")
	assert.InDelta(t, 0.03, float64(v.Given.PerPrefillToken), 1e-12, "what the autoscaler has learned has the hits in it")
	plain := parse(t, with(t, small, "{base: 10}", "{base: 10, perPrefillToken: 0.04}")).Models[0].Variants[0]
	assert.Equal(t, plain.Profile, plain.Given)
	assert.False(t, plain.PrefixCache)
}
