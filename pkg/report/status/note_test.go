package status

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestNotesAreBounded(t *testing.T) {
	assert.Equal(t, "short", Note("short"))
	long := Note(strings.Repeat("ä", 600))
	assert.LessOrEqual(t, len(long), mostNote)
	assert.True(t, strings.HasSuffix(long, "ä…"), "no character is cut in two")
}

func TestLongAccountsEndWithAClause(t *testing.T) {
	fits := strings.Repeat("x", mostBrief)
	assert.Equal(t, fits, Brief(fits))
	assert.Equal(t, fits+"x", Brief(fits+"x"), "one clause stays whole")
	two := "a, " + fits[len("a, "):]
	assert.Equal(t, two, Brief(two), "so does what is just short enough")
	assert.Equal(t, "a, ...", Brief(two+"x"))
	for _, end := range []string{", ", "; ", ": "} {
		assert.Equal(t, "wants 8xH100, ...", Brief("wants 8xH100"+end+fits))
		longest := strings.Repeat("x", mostBrief-len(", ..."))
		assert.Equal(t, longest+", ...", Brief(longest+end+"yyyyy"))
		assert.Equal(t, "a, ...", Brief("a, "+longest[2:]+end+"yyyyy"))
	}
}

// Errors that were joined in several steps are one line all the same.
func TestManyErrorsAreOneLine(t *testing.T) {
	t.Parallel()
	a, b, c := errors.New("a"), errors.New("b"), errors.New("c")
	for want, err := range map[string]error{
		"a":                    a,
		"a (and 1 more)":       errors.Join(a, b),
		"a (and 2 more)":       errors.Join(errors.Join(a, b), c),
		"read: a and b":        fmt.Errorf("read: %w and %w", a, b),
		"read: a (and 1 more)": errors.Join(fmt.Errorf("read: %w", a), b),
	} {
		assert.Equal(t, want, First(err))
	}
}
