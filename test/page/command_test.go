package page_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"llmd.ai/workload-variant-autoscaler/test/page"
)

// Every command line of the pages names programs, targets, values and files that there
// are. Those of kubectl wva are tried beside that program.
func TestEveryCommandIsGood(t *testing.T) {
	t.Parallel()
	tried := 0
	for _, p := range pages(t) {
		for _, block := range p.Blocks {
			for _, command := range block.Commands() {
				tried++
				assert.NoError(t, check(page.Words(command)), "%s: %s", block.Place, command)
			}
		}
	}
	require.Positive(t, tried)
}

// programs are what the pages may ask people to run, and what is checked of each.
var programs = map[string]func([]string) error{
	"make":    makes,
	"helm":    charts,
	"kubectl": objects,
	"go":      files,
	"git":     nothing, "curl": nothing, "docker": nothing, "export": nothing, "cd": nothing, "oc": objects, "jq": nothing, "diff": nothing,
	"bin/kubectl-wva": nothing, "kubectl-wva": nothing, "cp": nothing, "gcloud": nothing, "cat": nothing, "sudo": nothing, "install": nothing, "mkdir": nothing, "chmod": nothing, "mv": nothing,
	"kustomize": nothing, "hack/install.sh": nothing, "bash": files, ".": nothing, "bin/manager": nothing,
}

func nothing([]string) error { return nil }

func check(words []string) error {
	for len(words) > 0 && regexp.MustCompile(`^[A-Z_]+=`).MatchString(words[0]) {
		words = words[1:]
	}
	if len(words) == 0 {
		return nil
	}
	try, ok := programs[words[0]]
	if !ok {
		return fmt.Errorf("%s is no program that the pages use: correct it, or add it to test/page", words[0])
	}
	return try(words[1:])
}

// makefile is the text of the Makefile.
var makefile = sync.OnceValues(func() (string, error) {
	data, err := os.ReadFile(root + "/Makefile")
	return string(data), err
})

// makes checks targets and variables of make.
func makes(words []string) error {
	text, err := makefile()
	if err != nil {
		return err
	}
	for _, word := range words {
		name, _, variable := strings.Cut(word, "=")
		switch {
		case strings.HasPrefix(word, "-"):
		case variable && !regexp.MustCompile(`(?m)^`+regexp.QuoteMeta(name)+` \?=`).MatchString(text):
			return fmt.Errorf("the Makefile has no setting %s", name)
		case !variable && !regexp.MustCompile(`(?m)^`+regexp.QuoteMeta(name)+`:`).MatchString(text):
			return fmt.Errorf("the Makefile has no target %s", name)
		}
	}
	return nil
}

// chartValues are the values of the chart.
var chartValues = sync.OnceValues(func() (map[string]any, error) {
	data, err := os.ReadFile(root + "/charts/workload-variant-autoscaler/values.yaml")
	if err != nil {
		return nil, err
	}
	values := map[string]any{}
	return values, yaml.Unmarshal(data, &values)
})

// inValues says which value is none of the chart's. A map of the chart that is empty is
// for names of one's own.
func inValues(values map[string]any, name string, value any) error {
	have, ok := values[name]
	if !ok {
		return fmt.Errorf("%s is no value of the chart", name)
	}
	known, isMap := have.(map[string]any)
	given, isGiven := value.(map[string]any)
	if !isMap || !isGiven || len(known) == 0 {
		return nil
	}
	for inner, v := range given {
		if err := inValues(known, inner, v); err != nil {
			return fmt.Errorf("%s.%w", name, err)
		}
	}
	return nil
}

// charts checks the files of a helm command, and the values that it sets.
func charts(words []string) error {
	ours := slices.ContainsFunc(words, func(word string) bool {
		return strings.HasPrefix(strings.TrimPrefix(word, "./"), "charts/workload-variant-autoscaler")
	})
	if !ours {
		return nil
	}
	for i, word := range words {
		if i == 0 || !strings.HasPrefix(words[i-1], "--set") || strings.Contains(words[i-1], "=") {
			continue
		}
		for setting := range strings.SplitSeq(word, ",") {
			path, _, _ := strings.Cut(setting, "=")
			if err := setValue(path); err != nil {
				return err
			}
		}
	}
	return files(words)
}

func setValue(path string) error {
	values, err := chartValues()
	if err != nil {
		return err
	}
	parts := strings.Split(regexp.MustCompile(`\[\d+\]`).ReplaceAllString(path, ""), ".")
	var value any
	for _, part := range slices.Backward(parts[1:]) {
		value = map[string]any{part: value}
	}
	return inValues(values, parts[0], value)
}

// verbs are the commands of kubectl that the pages use.
var verbs = []string{
	"wva", "get", "describe", "apply", "delete", "patch", "taint", "label", "annotate", "logs", "rollout", "create", "scale", "wait", "edit", "explain",
	"port-forward", "auth", "config", "events", "adm", "top", "exec", "replace",
}

func objects(words []string) error {
	if !slices.ContainsFunc(words, func(word string) bool { return slices.Contains(verbs, word) }) {
		return errors.New("kubectl has no such command")
	}
	return files(words)
}

// files checks that the files and folders of the repository that a command names exist.
func files(words []string) error {
	for _, word := range words {
		name := strings.TrimPrefix(word, "./")
		top, _, inside := strings.Cut(name, "/")
		if !inside || !slices.Contains([]string{"manifests", "charts", "cmd", "hack", "test", "pkg", "docs"}, top) {
			continue
		}
		found, err := filepath.Glob(filepath.Join(root, strings.TrimSuffix(name, "/...")))
		if err != nil || len(found) == 0 {
			return fmt.Errorf("%s does not exist", name)
		}
	}
	return nil
}

func TestABadCommandIsFound(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]string{
		"make demos":      "no target demos",
		"make demo REP=1": "no setting REP",
		"maek test":       "no program that the pages use",
		"kubectl gte va":  "no such command",
		"kubectl apply -f manifests/samples/none.yaml": "manifests/samples/none.yaml does not exist",
		"go run ./cmd/none":                            "cmd/none does not exist",
		"helm install a charts/workload-variant-autoscaler --set wva.image.tags=b":             "wva.image.tags is no value of the chart",
		"helm install a charts/workload-variant-autoscaler --set-string wva.x.y=b,wva.risk=.9": "wva.x is no value",
		"helm upgrade a charts/workload-variant-autoscaler -f charts/none.yaml":                "charts/none.yaml does not exist",
	} {
		assert.ErrorContains(t, check(page.Words(command)), want, command)
	}
	for _, command := range []string{
		"make demo REPORT_HTML=a.html KEEP=1", "helm repo add a b", "KEY=value make test", "kubectl -n a get va",
		"helm install a ./charts/workload-variant-autoscaler --set 'wva.image.tag=b' --set wva.serviceClasses.mine.name=A",
		"go run ./cmd/kubectl-wva replay", "go test ./pkg/...",
	} {
		assert.NoError(t, check(page.Words(command)), command)
	}
}
