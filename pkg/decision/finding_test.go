package decision

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"llmd.ai/workload-variant-autoscaler/pkg/decision/contract"
)

func TestFindingsAreEqualThatSayTheSame(t *testing.T) {
	two := contract.SaysFit.With(2)
	all := []Finding{
		{}, two, contract.SaysFit.With(3), contract.SaysMinimum.With(2), contract.SaysFit.With(2.0), Words("a"), Words("b"),
		Clauses(two, Words("a")), Clauses(Words("a"), two), Because(two, Words("a")), two.And(Words("a")),
		contract.SaysUnrated.With(1, []string{"a"}), contract.SaysUnrated.With(1, []string{"b"}), contract.SaysUnrated.With(1, "a"),
		contract.SaysUnrated.With("a", 1), contract.SaysUnrated.With(two, 1), contract.SaysUnrated.With(1, two),
	}
	for i, a := range all {
		for j, b := range all {
			assert.Equal(t, i == j, a.Equal(b), "%v and %v", a, b)
		}
	}
	assert.True(t, contract.SaysUnrated.With(1, []string{"a"}).Equal(contract.SaysUnrated.With(1, []string{"a"})))
	assert.True(t, two.And(Words("a")).Equal(contract.SaysFit.With(2).And(Words("a"))))
	assert.Equal(t, two, Clauses(Finding{}, two))
	assert.True(t, Words("").None())
}

// Whoever has a message still has it after another one got a clause more.
func TestAMessageIsNotChangedByAClause(t *testing.T) {
	message := Words("a").And(Words("b"))
	one, other := message.And(Words("c")), message.And(Words("d"))
	assert.Equal(t, "a; b", textOf(message))
	assert.Equal(t, "a; b; c", textOf(one))
	assert.Equal(t, "a; b; d", textOf(other))
}
