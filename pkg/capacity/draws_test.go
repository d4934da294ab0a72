package capacity

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// The first numbers of the published implementation, seeded with 1234567.
func TestDrawsAreThoseOfSplitMix64(t *testing.T) {
	d := Draws(1234567)
	for _, want := range []uint64{6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821} {
		assert.Equal(t, want, d.Next())
	}
}

func TestSkippedNumbersAreLeftOut(t *testing.T) {
	one, other := Draws(7), Draws(7)
	for range 3 {
		one.Next()
	}
	other.Skip(3)
	assert.Equal(t, one, other)
	assert.Equal(t, one.Next(), other.Next())
}
