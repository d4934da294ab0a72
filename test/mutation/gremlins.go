package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

//go:embed go.sh
var standIn []byte

// kinds are the changes that are made. Left out are those that double another (Gremlins
// turns every minus round a second time as INVERT_NEGATIVES).
var kinds = []string{
	"--arithmetic-base", "--conditionals-boundary", "--conditionals-negation", "--increment-decrement",
	"--invert-logical", "--invert-assignments", "--invert-negatives=false",
}

// patience is how many times as long as the unchanged tests the changed ones may take.
// Another process on the machine must not pass for a loop without an end.
const patience = 10

// A finding is what Gremlins says of one change.
type finding struct {
	Kind   string `json:"type"`
	Status string `json:"status"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
}

// unleash runs Gremlins on a copy of the module and returns every change that compiles,
// in the order of the code.
func unleash(ctx context.Context, o *options, out io.Writer) ([]mutant, error) {
	scratch, err := os.MkdirTemp("", "mutation-")
	if err != nil {
		return nil, fmt.Errorf("make a folder to work in: %w", err)
	}
	defer func() { _ = os.RemoveAll(scratch) }()

	tree := filepath.Join(scratch, "tree")
	if err := copyTree(ctx, tree); err != nil {
		return nil, err
	}
	compiler, err := exec.LookPath("go")
	if err != nil {
		return nil, fmt.Errorf("find go: %w", err)
	}
	if err := os.WriteFile(filepath.Join(scratch, "go"), standIn, 0o700); err != nil {
		return nil, fmt.Errorf("write the program that stands in for go: %w", err)
	}
	others, err := exclusions(o)
	if err != nil {
		return nil, err
	}
	tests, err := testsOf(o.folder)
	if err != nil {
		return nil, err
	}
	// Compiled before the time of the tests is measured.
	if text, err := command(ctx, tree, compiler, "test", "-c", "-cover", "-o", os.DevNull, "./"+tests).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("compile the tests: %w\n%s", err, text)
	}

	report := filepath.Join(scratch, "report.json")
	arguments := slices.Concat([]string{"unleash", "--output", report, "--timeout-coefficient", strconv.Itoa(patience)}, kinds, others, []string{"./" + o.folder})
	gremlins := command(ctx, tree, o.gremlins, arguments...)
	gremlins.Env = append(os.Environ(), "PATH="+scratch+string(os.PathListSeparator)+os.Getenv("PATH"),
		"MUTATION_GO="+compiler, "MUTATION_SAMPLE="+strconv.Itoa(o.sample), "TMPDIR="+scratch)
	if tests != o.folder {
		gremlins.Env = append(gremlins.Env, "MUTATION_TESTS="+filepath.Join(tree, filepath.FromSlash(tests)), "MUTATION_PKG="+o.folder)
	}
	gremlins.Stdout, gremlins.Stderr = out, out
	if err := gremlins.Run(); err != nil {
		return nil, fmt.Errorf("run gremlins: %w", err)
	}
	// The code of the copy: whoever waits for this may have gone on writing.
	return readReport(report, filepath.Join(tree, filepath.FromSlash(o.folder)))
}

func command(ctx context.Context, dir, name string, arguments ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, name, arguments...)
	c.Dir = dir
	return c
}

// copyTree copies the files that git knows or would take, as they are now, so that
// nothing is copied of what was built.
func copyTree(ctx context.Context, to string) error {
	names, err := command(ctx, ".", "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		return fmt.Errorf("list the files of the checkout: %w", err)
	}
	for _, name := range strings.Split(strings.TrimSuffix(string(names), "\x00"), "\x00") {
		data, err := os.ReadFile(name)
		if os.IsNotExist(err) {
			continue // deleted and not committed yet
		}
		if err != nil {
			return fmt.Errorf("copy the checkout: %w", err)
		}
		target := filepath.Join(to, name)
		if err := os.MkdirAll(filepath.Dir(target), 0o700); err != nil {
			return fmt.Errorf("copy the checkout: %w", err)
		}
		if err := os.WriteFile(target, data, 0o600); err != nil {
			return fmt.Errorf("copy the checkout: %w", err)
		}
	}
	return nil
}

// testsOf is the folder whose tests are asked about a package: its own, or the nearest above it that
// has some. The stages of a decision are tried by the tests of the whole.
func testsOf(folder string) (string, error) {
	for at := folder; at != "."; at = path.Dir(at) {
		found, err := filepath.Glob(filepath.Join(filepath.FromSlash(at), "*_test.go"))
		if err != nil {
			return "", fmt.Errorf("look for tests of %s: %w", folder, err)
		}
		if len(found) > 0 {
			return at, nil
		}
	}
	return "", fmt.Errorf("neither %s nor a folder above it has tests", folder)
}

// exclusions names the files below the folder that are not to be changed: those of other
// packages, and all but one where one file is asked for. Gremlins can only be told what
// to leave out.
func exclusions(o *options) ([]string, error) {
	entries, err := os.ReadDir(filepath.FromSlash(o.folder))
	if err != nil {
		return nil, fmt.Errorf("list the files of %s: %w", o.folder, err)
	}
	var arguments []string
	for _, e := range entries {
		if e.IsDir() {
			arguments = append(arguments, "--exclude-files", "^"+regexp.QuoteMeta(e.Name())+"/")
		} else if o.file != "" && e.Name() != o.file {
			arguments = append(arguments, "--exclude-files", "^"+regexp.QuoteMeta(e.Name())+"$")
		}
	}
	return arguments, nil
}

func readReport(name, folder string) ([]mutant, error) {
	data, err := os.ReadFile(name)
	if os.IsNotExist(err) {
		return nil, fmt.Errorf("nothing in %s can be changed", folder)
	}
	if err != nil {
		return nil, fmt.Errorf("read what gremlins found: %w", err)
	}
	var report struct {
		Files []struct {
			Name     string    `json:"file_name"`
			Findings []finding `json:"mutations"`
		} `json:"files"`
	}
	if err := json.Unmarshal(data, &report); err != nil {
		return nil, fmt.Errorf("read what gremlins found: %w", err)
	}
	var mutants []mutant
	for _, f := range report.Files {
		source, err := os.ReadFile(filepath.Join(folder, f.Name))
		if err != nil {
			return nil, fmt.Errorf("read the changed file: %w", err)
		}
		found, err := locate(f.Name, source, f.Findings)
		if err != nil {
			return nil, err
		}
		mutants = append(mutants, found...)
	}
	if len(mutants) == 0 {
		return nil, fmt.Errorf("no change of %s compiles", folder)
	}
	slices.SortFunc(mutants, mutant.compare)
	return mutants, nil
}
