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
