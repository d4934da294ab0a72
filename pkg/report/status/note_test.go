package status

import (
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
