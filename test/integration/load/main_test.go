package load_test

import (
	"flag"
	"os"
	"testing"
)

// A few tests run at once, however few processors there are: most of the time they wait.
// All at once would keep two processors so busy that a machine which shares them with
// others sends the traffic late.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "4"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// One cluster for all of them.
func TestLoad(t *testing.T) {
	w := start(t)
	for name, run := range map[string]func(*testing.T, *world){
		"a step is answered in full at once, and given back once": aStep,
		"one more at twelve is written":                           oneMoreAtTwelve,
		"Prometheus stops":                                        prometheusStops,
		"half of the pods show nothing":                           halfOfThePodsShowNothing,
		"all numbers are none":                                    allNumbersAreNone,
		"pods are asked where there is no Prometheus":             podsAreAsked,
		"somebody else scales":                                    somebodyElseScales,
		"the more important model gets the last node":             theMoreImportantModelGetsTheLastNode,
		"replicas that never start are withdrawn":                 replicasThatNeverStart,
		"replicas that crash are withdrawn":                       replicasThatCrash,
		"an idle model sleeps and wakes":                          anIdleModelSleepsAndWakes,
		"nothing goes while pods are replaced":                    nothingGoesWhilePodsAreReplaced,
		"a HorizontalPodAutoscaler writes what is published":      throughTheHPA,
		"the queries of the documentation have answers":           theDocumentedQueries,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, w)
		})
	}
}
