package sentence

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/contract"
)

func TestRatesOfMessagesTellLittleFromNothing(t *testing.T) {
	for rate, want := range map[capacity.Rate]string{0: "0", 0.00314: "0.0031", 0.0999: "0.1", 0.1: "0.10", 1.234: "1.23", 1234.5: "1234.50"} {
		assert.Equal(t, want+" req/s unserved", Of(contract.SaysUnserved.With(rate)))
	}
}

func TestAClauseIsJoinedWhereItFits(t *testing.T) {
	clause := strings.Repeat("x", mostMessage-len("a; "))
	a, fits, long := contract.Words("a"), contract.Words(clause), contract.Words(clause+"x")
	assert.Equal(t, "a; "+clause, Of(a.And(fits)))
	assert.Equal(t, "a", Of(a.And(long)))
	assert.Equal(t, "a; b", Of(a.And(long).And(contract.Words("b"))), "what is short follows what is too long")
	assert.Equal(t, "aa; b", Of(contract.Words("aa").And(a).And(contract.Words("b"))), "what is said already is not said again")
	assert.Equal(t, "a", Of(contract.Finding{}.And(a)))
}

// Each sentence has a form, but for those that are told in another way.
func TestEverySentenceIsSaid(t *testing.T) {
	others := map[contract.Sentence]bool{
		contract.SaysClauses: true, contract.SaysListed: true, contract.SaysMessage: true, contract.SaysUnread: true,
		contract.SaysMix: true, contract.SaysLost: true, contract.SaysMet: true,
	}
	verbs := regexp.MustCompile(`%[.0-9]*[a-z]`)
	for says := contract.SaysNothing + 1; says < contract.Sentences; says++ {
		f := &forms[says]
		assert.Equal(t, !others[says], f.text != "", "sentence %d", says)
		if f.one != "" {
			assert.Equal(t, verbs.FindAllString(f.text, -1), verbs.FindAllString(f.one, -1), f.text)
			assert.NotEqual(t, f.text, f.one)
		}
	}
	assert.Empty(t, Of(contract.Finding{}))
}

func TestSentences(t *testing.T) {
	soon := time.Date(2026, 7, 1, 14, 5, 6, 0, time.FixedZone("east", 3600))
	met := contract.SaysMet.With(contract.Share(0.2), contract.Share(0.97))
	for want, f := range map[string]contract.Finding{
		"0 replicas suffice":   contract.SaysSuffice.With(contract.Finding{}, 0, capacity.Rate(1)),
		"1 replica suffices":   contract.SaysSuffice.With(contract.Finding{}, 1, capacity.Rate(1)),
		"a; b":                 contract.Clauses(contract.Words("a"), contract.Finding{}, contract.Words("b")),
		"a":                    contract.Because(contract.Words("a"), contract.Finding{}),
		"a: b":                 contract.Because(contract.Words("a"), contract.Words("b")),
		"not ready in time: a": contract.SaysNotReady.With(contract.Words("a")),
		"field manager argocd keeps changing the replicas: no writes until 13:05:06 UTC; stop it, or set actuation to Off": contract.SaysKeepsChanging.With(contract.SaysFieldManager.With("argocd"), soon),
		"no metrics: a, b, c and 2 more": contract.SaysLacking.With(contract.SaysNoMetrics.With(), []string{"e", "d", "c", "b", "a"}),
		"a: p; b: q":                     contract.SaysUnread.With(contract.SaysLacking.With(contract.Words("b"), []string{"q"}), contract.SaysLacking.With(contract.Words("a"), []string{"p"})),
		"2 crash-looping, 1 without pod: the rollout is paused": contract.SaysLost.With(0, 2, 0, 0, 1, true),
		"replicas are 81 % full, above 70 %":                    contract.SaysTooFull.With(contract.Share(0.81), contract.Share(0.7), 0, 0),
		"20.0% to 97.0% of the requests met the SLO":            met,
		"97.0% of the requests met the SLO":                     contract.SaysMet.With(contract.Share(0.97), contract.Share(0.97)),
		"counted at 85% of what its latency model says: a":      contract.SaysCountedAt.With(contract.Share(0.85), contract.Words("a")),
		"2 of a and 1 of b for 3.00/h, now 4.50/h":              contract.SaysAlternative.With(contract.SaysMix.With(contract.SaysReplicasOf.With(2, "a"), contract.SaysReplicasOf.With(1, "b")), capacity.Cost(3), capacity.Cost(4.5)),
		"replicas are 50 % full, 1.5 requests wait per replica, beside 1 that is saturated, beside 2 whose queue nobody serves": contract.SaysLoad.With(contract.Share(0.5), 1.5, 1, 2),
	} {
		assert.Contains(t, Of(f), want)
		assert.NotContains(t, Of(f), "%!")
	}
	for bucket, want := range map[contract.Bucket]string{
		{Above: 500}:            "the last one, above 500 ms, which does not tell how many: set it to 500",
		{UpTo: 500}:             "from 0 to 500 ms, which does not tell how many: set it to 500",
		{Above: 500, UpTo: 750}: "from 500 to 750 ms, which does not tell how many: set it to 500 or 750",
	} {
		assert.Equal(t, fmt.Sprintf("20.0%% to 97.0%% of the requests met the SLO: slo-ttft 600 ms lies within a bucket of the servers' histogram, %s", want),
			Of(contract.SaysWithinBucket.With(met, "slo-ttft", capacity.Milliseconds(600), bucket)))
	}
}
