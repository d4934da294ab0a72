package release

import (
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestTheVersionOfAProgram(t *testing.T) {
	t.Parallel()
	module := debug.Module{Version: "v0.0.0-20260101000000-abcdef"}
	commit := []debug.BuildSetting{{Key: "vcs.revision", Value: "abcdef"}}
	for name, c := range map[string]struct {
		given string
		info  *debug.BuildInfo
		want  string
	}{
		"what the build was given":          {"v1.2.3", &debug.BuildInfo{Main: module}, "v1.2.3"},
		"a plain build has its module's":    {"v0.0.0-master+$Format:%H$", &debug.BuildInfo{Main: module}, module.Version},
		"a plain build without a version":   {"v0.0.0-master+$Format:%H$", &debug.BuildInfo{}, "(devel)"},
		"a build that wrote nothing at all": {"", nil, "(devel)"},
	} {
		assert.Equal(t, c.want, of(c.given, c.info).Version, name)
	}
	assert.Equal(t, "abcdef", of("", &debug.BuildInfo{Settings: commit}).Commit)
	assert.NotContains(t, This().Version, "$Format", "a test is built without a version")
}
