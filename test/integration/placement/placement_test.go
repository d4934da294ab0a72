package placement_test

import (
	"flag"
	"os"
	"testing"
)

// All tests run at once, however few processors there are: most of the time they
// wait.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "16"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// One cluster for all of them.
func TestPlacement(t *testing.T) {
	w := start(t)
	for name, run := range map[string]func(*testing.T, *world){
		"eight holes of one are no room for eight":       eightHoles,
		"nor for the only replica of a model":            theOnlyReplicaFindsNoNode,
		"half of the nodes is half of the slots":         halfOfTheNodes,
		"a variant comes back at most once per back-off": comesBack,
		"the replicas that go leave a node empty":        leavesANodeEmpty,
		"or are left to Kubernetes":                      leftToKubernetes,
		"people see it too":                              peopleSee,
		"what stays unschedulable gives way to others":   givesWay,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, w)
		})
	}
}
