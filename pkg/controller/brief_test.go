package controller

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
)

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
		assert.Equal(t, want, brief(err))
	}
}
