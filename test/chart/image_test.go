package chart

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// stagesOf are the lines of each stage of a Dockerfile, by its name.
func stagesOf(t *testing.T, path string) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	begins := regexp.MustCompile(`^FROM (\S+) AS (\S+)$`)
	all, name := map[string][]string{}, ""
	for line := range strings.SplitSeq(strings.ReplaceAll(string(text), "\\\n", ""), "\n") {
		if found := begins.FindStringSubmatch(line); found != nil {
			name = found[2]
		}
		if name != "" && !strings.HasPrefix(line, "#") {
			all[name] = append(all[name], line)
		}
	}
	return all
}

// builtFor are the lines of all stages that a build of the target runs.
func builtFor(stages map[string][]string, target string) (lines []string) {
	for _, line := range stages[target] {
		lines = append(lines, line)
		for _, taken := range regexp.MustCompile(`^(?:FROM |COPY --from=)(\S+)`).FindAllStringSubmatch(line, -1) {
			if taken[1] != target {
				lines = append(lines, builtFor(stages, taken[1])...)
			}
		}
	}
	return lines
}

// The image of the manager is built without Kubernetes itself, whose compilation takes minutes and
// gigabytes: only the other two programs link it.
func TestTheImageOfTheManagerCompilesNoKubernetes(t *testing.T) {
	stages := stagesOf(t, "../../Dockerfile")
	compiles := func(target string) []string {
		all := regexp.MustCompile(`\./cmd/\S+`).FindAllString(strings.Join(builtFor(stages, target), "\n"), -1)
		require.NotEmpty(t, all, "the test finds what %s is built from", target)
		return all
	}
	linked := func(program string) bool {
		command := exec.CommandContext(t.Context(), "go", "list", "-deps", program)
		command.Dir = "../.."
		out, err := command.Output()
		require.NoError(t, err)
		return strings.Contains("\n"+string(out), "\nk8s.io/kubernetes/")
	}
	assert.Equal(t, []string{"./cmd/manager"}, compiles("manager"))
	assert.False(t, linked("./cmd/manager"))
	assert.Equal(t, []string{"./cmd/scheduler"}, compiles("scheduler"))
	assert.True(t, linked("./cmd/scheduler"), "the test sees who links Kubernetes")
	assert.Equal(t, []string{"./cmd/manager", "./cmd/scheduler", "./cmd/playground"}, compiles("playground"))
}
