package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestOptionsNameAPackageOrAFileOfOne(t *testing.T) {
	o, err := parseOptions([]string{"--gremlins", "g", "--pkg", "./testdata/"})
	require.NoError(t, err)
	assert.Equal(t, &options{gremlins: "g", folder: "testdata", sample: 1}, o)

	o, err = parseOptions([]string{"--gremlins", "g", "--pkg", "testdata/size.txt.go"})
	require.ErrorContains(t, err, "size.txt.go")
	assert.Nil(t, o)

	t.Chdir("..")
	o, err = parseOptions([]string{"--gremlins", "g", "--pkg", "mutation/judge.go", "--sample", "10"})
	require.NoError(t, err)
	assert.Equal(t, &options{gremlins: "g", folder: "mutation", file: "judge.go", sample: 10}, o)

	for _, arguments := range [][]string{
		nil, {"--pkg", "mutation"}, {"--gremlins", "g"}, {"--gremlins", "g", "--pkg", "mutation", "more"}, {"--gremlins", "g", "--pkg", "nowhere"},
		{"--gremlins", "g", "--pkg", "mutation", "--sample", "0"},
	} {
		_, err := parseOptions(arguments)
		assert.Error(t, err, "%v", arguments)
	}
}

func TestExclusionsLeaveOutOtherPackagesAndFiles(t *testing.T) {
	all, err := exclusions(&options{folder: "."})
	require.NoError(t, err)
	assert.Equal(t, []string{"--exclude-files", "^testdata/"}, all)

	one, err := exclusions(&options{folder: ".", file: "judge.go"})
	require.NoError(t, err)
	assert.Contains(t, one, `^list\.go$`)
	assert.NotContains(t, one, `^judge\.go$`)
}

func TestLocateNamesTheChangeByItsCode(t *testing.T) {
	source, err := os.ReadFile("testdata/size.go.txt")
	require.NoError(t, err)
	mutants, err := locate("size.go", source, []finding{
		{Kind: "CONDITIONALS_BOUNDARY", Status: "LIVED", Line: 6, Column: 7},
		{Kind: "ARITHMETIC_BASE", Status: "KILLED", Line: 3, Column: 16},
		{Kind: "ARITHMETIC_BASE", Status: "NOT VIABLE", Line: 3, Column: 16},
		{Kind: "ARITHMETIC_BASE", Status: "TIMED OUT", Line: 12, Column: 40},
	})
	require.NoError(t, err)
	require.Len(t, mutants, 3, "what does not compile is no change")
	assert.Equal(t, "size.go Clamp CONDITIONALS_BOUNDARY: if n @> most {", mutants[0].String())
	assert.Equal(t, "size.go - ARITHMETIC_BASE: const most = 4 @* 2", mutants[1].String())
	assert.Equal(t, "size.go Size.Half ARITHMETIC_BASE: func (s *Size) Half() int { return s.n @/ 2 }", mutants[2].String())

	_, err = locate("size.go", source, []finding{{Kind: "ARITHMETIC_BASE", Status: "LIVED", Line: 600, Column: 1}})
	require.ErrorContains(t, err, "line 600")
	_, err = locate("size.go", source, []finding{{Kind: "ARITHMETIC_BASE", Status: "NOT COVERED", Line: 3, Column: 16}})
	require.ErrorContains(t, err, "NOT COVERED")
}

const list = `# of ties
size.go Clamp CONDITIONALS_BOUNDARY: if n @> most {
    Both give
    most.

size.go - ARITHMETIC_BASE: const most = 4 @* 2
size.go - ARITHMETIC_BASE: const least = 4 @/ 2
	Nothing reads them.
`

func TestListGivesEveryChangeItsReason(t *testing.T) {
	reasons, err := parseList(list)
	require.NoError(t, err)
	assert.Equal(t, map[identity]string{
		{"size.go", "Clamp", "CONDITIONALS_BOUNDARY", "if n @> most {"}: "Both give most.",
		{"size.go", "-", "ARITHMETIC_BASE", "const most = 4 @* 2"}:      "Nothing reads them.",
		{"size.go", "-", "ARITHMETIC_BASE", "const least = 4 @/ 2"}:     "Nothing reads them.",
	}, reasons)
}

func TestListSaysWhatIsWrongWithIt(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"no reason at the end": {"a.go f KIND: x @> y\n", "no reason"},
		"a reason of nothing":  {"  why\n", "line 1: a reason without a change"},
		"no operator marked":   {"a.go f KIND: x > y\n  why\n", "line 1"},
		"no kind":              {"a.go f: x @> y\n  why\n", "line 1"},
		"twice":                {"a.go f KIND: x @> y\n  why\na.go f KIND: x @> y\n  why\n", "line 3: the change is listed twice"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parseList(c.text)
			assert.ErrorContains(t, err, c.want)
		})
	}
}

func TestReadListOfAPackageAndOfOneFile(t *testing.T) {
	dir := t.TempDir()
	none, err := readList(dir, "")
	require.NoError(t, err)
	assert.Empty(t, none, "a package without a list")

	require.NoError(t, os.Mkdir(filepath.Join(dir, "testdata"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, filepath.FromSlash(listName)), []byte(list+"other.go f KIND: x @> y\n  why\n"), 0o600))
	all, err := readList(dir, "")
	require.NoError(t, err)
	assert.Len(t, all, 4)
	one, err := readList(dir, "other.go")
	require.NoError(t, err)
	assert.Len(t, one, 1)
}

func change(code string, s status) mutant {
	return mutant{identity: identity{file: "a.go", function: "f", kind: "KIND", code: code}, status: s}
}

func many(n int, s status, more ...mutant) []mutant {
	for range n {
		more = append(more, change("x @+ y", s))
	}
	return more
}

func TestJudge(t *testing.T) {
	same := map[identity]string{change("x @> y", lived).identity: "the same"}
	for name, c := range map[string]struct {
		mutants []mutant
		reasons map[identity]string
		want    []string
	}{
		"all are noticed":             {mutants: many(20, killed)},
		"too long is noticed":         {mutants: many(20, timedOut)},
		"listed":                      {mutants: many(19, killed, change("x @> y", lived)), reasons: same},
		"not listed":                  {mutants: many(19, killed, change("x @> y", lived)), want: []string{"1 survivors are not in"}},
		"listed, but noticed":         {mutants: many(19, killed, change("x @> y", killed)), reasons: same, want: []string{"1 survivors in testdata/survivors.txt no longer live"}},
		"listed, and takes too long":  {mutants: many(19, killed, change("x @> y", timedOut)), reasons: same},
		"listed, but not in the code": {mutants: many(19, killed), reasons: same, want: []string{"no longer live"}},
		"more than one in twenty":     {mutants: many(18, killed, change("x @> y", lived)), reasons: same, want: []string{"more than one change in 20"}},
	} {
		t.Run(name, func(t *testing.T) {
			err := judge(c.mutants, c.reasons).err()
			if c.want == nil {
				assert.NoError(t, err)
			}
			for _, w := range c.want {
				assert.ErrorContains(t, err, w)
			}
		})
	}
}

// The program that stands in for go, on a module of one package: the measured run, and
// the three ends of a changed one.
func TestStandIn(t *testing.T) {
	compiler, err := exec.LookPath("go")
	require.NoError(t, err)
	scratch := t.TempDir()
	standInName := filepath.Join(scratch, "go")
	require.NoError(t, os.WriteFile(standInName, standIn, 0o700))
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(scratch, name), []byte(text), 0o600))
	}
	write("go.mod", "module example.com/size\n\ngo 1.26\n")
	write("size_test.go", "package size\n\nimport \"testing\"\n\nfunc TestHalf(t *testing.T) {\n\tif Half(4) != 2 {\n\t\tt.Fatal(Half(4))\n\t}\n}\n")
	run := func(arguments ...string) int {
		c := command(t.Context(), scratch, standInName, arguments...)
		c.Env = append(os.Environ(), "MUTATION_GO="+compiler, "GOTMPDIR="+scratch)
		text, err := c.CombinedOutput()
		var exit *exec.ExitError
		if err != nil {
			require.ErrorAs(t, err, &exit)
		}
		t.Logf("%v\n%s", arguments, text)
		return c.ProcessState.ExitCode()
	}

	const good = "package size\n\nfunc Half(n int) int { return n / 2 }\n\nfunc Unused() int { return 2 - 1 }\n"
	write("size.go", good)
	assert.Equal(t, 0, run("mod", "download"))
	profile := filepath.Join(scratch, "profile")
	require.Equal(t, 0, run("test", "-cover", "-coverprofile", profile, "./..."))
	covered, err := os.ReadFile(profile)
	require.NoError(t, err)
	assert.Contains(t, string(covered), "example.com/size/size.go:1.1,1000000.1 1 1\n", "all of the file counts as covered")

	changed := []string{"test", "-timeout", "10s", "-failfast", "example.com/size"}
	assert.Equal(t, 0, run(changed...), "not noticed")
	write("size.go", "package size\n\nfunc Half(n int) int { return n * 2 }\n")
	assert.Equal(t, 1, run(changed...), "noticed")
	write("size.go", "package size\n\nfunc Half(n int) int { panic(n) }\n")
	assert.Equal(t, 1, run(changed...), "noticed by a panic")
	write("size.go", "package size\n\nfunc Half(n int) int { return n + \"2\" }\n")
	assert.Equal(t, 2, run(changed...), "does not compile")

	// Of many changes about one in three is in a sample, the same ones each time.
	t.Setenv("MUTATION_SAMPLE", "3")
	in := 0
	for i := range 12 {
		write("size.go", fmt.Sprintf("package size\n\nfunc Half(n int) int { return n * %d }\n", i+2))
		first := run(changed...)
		assert.Contains(t, []int{1, 2}, first)
		in += 2 - first
	}
	assert.True(t, in > 0 && in < 12, "%d of 12", in)
}
