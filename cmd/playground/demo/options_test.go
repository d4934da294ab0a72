package demo

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParse(t *testing.T) {
	defaults := Options{Duration: 3 * time.Minute, Tail: time.Minute, Models: 2, Startup: 15 * time.Second, Rate: 1, Metrics: metricsPrometheus, Mode: modeHybrid, Report: "demo-report.json", ReportHTML: "demo-report.html", Seed: 1}
	with := func(change func(*Options)) Options {
		o := defaults
		change(&o)
		return o
	}
	tests := map[string]struct {
		args []string
		want Options
	}{
		"no flags": {nil, defaults},
		"a bare number is seconds": {[]string{"--duration", "90", "--startup=0", "--tail=5"}, with(func(o *Options) {
			o.Duration, o.Startup, o.Tail = 90*time.Second, 0, 5*time.Second
		})},
		"a duration with a unit": {[]string{"--duration", "1m30s"}, with(func(o *Options) { o.Duration = 90 * time.Second })},
		"a trace and its rate": {[]string{"--trace", "t.csv", "--rate", "20"}, with(func(o *Options) {
			o.Trace, o.Rate = "t.csv", 20
		})},
		"sizing by saturation alone":       {[]string{"--mode=capacity-only"}, with(func(o *Options) { o.Mode = modeCapacityOnly })},
		"pods as the source":               {[]string{"--metrics=pods"}, with(func(o *Options) { o.Metrics = metricsPods })},
		"one model":                        {[]string{"--models=1"}, with(func(o *Options) { o.Models = 1 })},
		"KEEP=1 as make passes it":         {[]string{"--keep=1"}, with(func(o *Options) { o.Keep = true })},
		"a page with pictures":             {[]string{"--report-html=r.html"}, with(func(o *Options) { o.ReportHTML = "r.html" })},
		"empty strings are not given":      {[]string{"--trace=", "--logs=", "--keep=false"}, defaults},
		"the default rate without a trace": {[]string{"--rate=1"}, defaults},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := parse(test.args, io.Discard)
			require.NoError(t, err)
			assert.Equal(t, test.want, got)
		})
	}
}

func TestMistakesAreOneLineAndExitTwo(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		return path
	}
	const header = "TIMESTAMP,ContextTokens,GeneratedTokens\n"
	bad := file("bad.csv", header+"2023-11-16 18:15:46.6805900,374,44\n2023-11-16 18:15:50.9951690,many,109\n")
	late := file("late.csv", header+"2023-11-16 18:15:46,374,44\n2023-11-16 18:16:45,1,1\n2023-11-16 18:17:00,1,1\n2023-11-16 18:17:01,broken\n")
	taken := filepath.Join(dir, "taken", "playground.log")
	require.NoError(t, os.MkdirAll(taken, 0o755))
	logs := filepath.Join(dir, "deep", "logs")
	tests := map[string]struct {
		args []string
		want []string
	}{
		"not a duration":               {[]string{"--duration=soon"}, []string{"--duration", `"soon"`, "3m"}},
		"nothing to do":                {[]string{"--duration=0"}, []string{"--duration", "between 1s"}},
		"negative":                     {[]string{"--tail=-5s"}, []string{"--tail", "between 0"}},
		"a start-up of a day":          {[]string{"--startup=24h"}, []string{"--startup", "1h"}},
		"not a rate":                   {[]string{"--rate=fast"}, []string{"--rate", `"fast"`}},
		"no requests at all":           {[]string{"--trace=" + bad, "--rate=0"}, []string{"--rate", "above 0"}},
		"not a number":                 {[]string{"--trace=" + bad, "--rate=NaN"}, []string{"--rate", "above 0"}},
		"a rate of nothing":            {[]string{"--rate=2"}, []string{"--rate", "--trace"}},
		"not a yes or no":              {[]string{"--keep=maybe"}, []string{"--keep", "maybe"}},
		"no such mode":                 {[]string{"--mode=best"}, []string{"--mode", "hybrid", "capacity-only"}},
		"no models":                    {[]string{"--models=0"}, []string{"--models", "between 1 and 2"}},
		"more models than there are":   {[]string{"--models=3"}, []string{"--models", "between 1 and 2"}},
		"no such source":               {[]string{"--metrics=guesses"}, []string{"--metrics", "pods"}},
		"an unknown flag":              {[]string{"--quick"}, []string{"--quick"}},
		"an argument":                  {[]string{"DURATION=3m"}, []string{"DURATION=3m", "--help"}},
		"a report in nowhere":          {[]string{"--report=" + filepath.Join(dir, "none", "r.json")}, []string{"--report", "none"}},
		"a report that is a directory": {[]string{"--report=" + dir}, []string{"--report", "directory"}},
		"pictures in nowhere":          {[]string{"--report-html=" + filepath.Join(dir, "none", "r.html")}, []string{"--report-html", "none"}},
		"pictures over the report":     {[]string{"--report-html=" + filepath.Join(dir, "r.json")}, []string{"--report-html", "two files"}},
		"no name for the page":         {[]string{"--report-html="}, []string{"--report-html", "file"}},
		"no name for the report":       {[]string{"--report="}, []string{"--report", "file"}},
		"logs below a file":            {[]string{"--logs=" + filepath.Join(bad, "deep", "logs")}, []string{"--logs", "directory"}},
		"a log that is a directory":    {[]string{"--logs=" + filepath.Dir(taken)}, []string{"--logs", "playground.log", "directory"}},
		"logs into a file":             {[]string{"--logs=" + bad}, []string{"--logs", "directory"}},
		"a trace that is missing":      {[]string{"--trace=" + filepath.Join(dir, "none.csv")}, []string{"--trace", "none.csv", "no such file"}},
		"a trace that is a directory":  {[]string{"--trace=" + dir}, []string{"--trace", "not a regular file"}},
		"an empty trace":               {[]string{"--trace=" + file("empty.csv", "")}, []string{"empty.csv:1:", "expected"}},
		"another header":               {[]string{"--trace=" + file("head.csv", "a,b,c\n")}, []string{"head.csv:1:", "a,b,c", "TIMESTAMP"}},
		"a header alone":               {[]string{"--trace=" + file("alone.csv", header)}, []string{"alone.csv", "no requests", "expected"}},
		"a malformed line":             {[]string{"--trace=" + bad}, []string{"bad.csv:3:", `"many"`, "whole number"}},
		"far into the needed part":     {[]string{"--trace=" + late, "--duration=2m"}, []string{"late.csv:5:", "columns"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var stderr bytes.Buffer
			code := Main(append([]string{"--report", filepath.Join(dir, "r.json"), "--logs", logs}, test.args...), io.Discard, &stderr)
			assert.Equal(t, 2, code)
			assert.Equal(t, 1, strings.Count(stderr.String(), "\n"), stderr.String())
			for _, part := range test.want {
				assert.Contains(t, stderr.String(), part)
			}
			assert.NoFileExists(t, filepath.Join(dir, "r.json"))
			assert.NoDirExists(t, filepath.Dir(logs), "a mistake makes nothing")
		})
	}
	t.Run("what is not needed is not looked at", func(t *testing.T) {
		got, err := checkTrace(Options{Trace: late, Rate: 1, Duration: time.Minute})
		require.NoError(t, err)
		assert.Equal(t, extent{requests: 2, last: 59 * time.Second}, got)
	})
}

func TestOutputIsTriedAndTakenBack(t *testing.T) {
	dir := t.TempDir()
	o := Options{Logs: filepath.Join(dir, "deep", "logs"), Report: filepath.Join(dir, "deep", "logs", "r.json"), ReportHTML: filepath.Join(dir, "deep", "logs", "r.html")}
	undo, err := o.checkOutput()
	require.NoError(t, err, "the report may lie among the logs")
	entries, err := os.ReadDir(o.Logs)
	require.NoError(t, err)
	assert.Empty(t, entries, "what was tried is gone")
	undo()
	assert.NoDirExists(t, filepath.Join(dir, "deep"))

	require.NoError(t, os.MkdirAll(o.Logs, 0o755))
	require.NoError(t, os.WriteFile(o.Report, []byte("older"), 0o644))
	undo, err = o.checkOutput()
	require.NoError(t, err)
	undo()
	content, err := os.ReadFile(o.Report)
	require.NoError(t, err)
	assert.Equal(t, "older", string(content), "what was there stays")
}

func TestHelpShowsExamples(t *testing.T) {
	var stdout, stderr bytes.Buffer
	assert.Equal(t, 0, Main([]string{"--help"}, &stdout, &stderr))
	assert.Empty(t, stderr.String())
	for _, part := range []string{"playground demo --trace", "--duration", "--trace", "--rate", "--tail", "--startup", "--report", "--report-html", "--keep", "--logs", "--seed", "(default 3m)"} {
		assert.Contains(t, stdout.String(), part)
	}
	for line := range strings.Lines(stdout.String()) {
		assert.LessOrEqual(t, len(strings.TrimSuffix(line, "\n")), 100, line)
	}
}

func TestARateMultipliesTheNeededPartOfATrace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.csv")
	require.NoError(t, os.WriteFile(path, []byte("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46,3,4\n2023-11-16 18:15:47,3,4\n"), 0o644))
	got, err := checkTrace(Options{Trace: path, Rate: 20, Duration: time.Minute})
	require.NoError(t, err)
	assert.Equal(t, 40, got.requests)
}
