package replay

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestATraceHasALimit(t *testing.T) {
	source := sourceOf(io.EOF, arrival(0, 10, 10), arrival(1, 10, 10), arrival(2, 10, 10))
	_, _, err := holdUpTo(source, 3)
	require.NoError(t, err)
	_, _, err = holdUpTo(source, 2)
	require.EqualError(t, err, "there are more than 2 requests in the trace; expected at most so many: replay a part of it, or lower its rate")
}

func TestAFleetHasOneName(t *testing.T) {
	for _, name := range []string{"static:0", "static:3", "static:100000"} {
		require.NoError(t, CheckPolicy(name))
	}
	for _, name := range []string{"static:03", "static:+3", "static:-0", "static: 3", "static:3.0", "static:100001", "static:99999999999999999999"} {
		require.ErrorContains(t, CheckPolicy(name), "expected 0 to 100000", name)
	}
}
