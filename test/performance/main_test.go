package main

import (
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWithoutANameAllAreListed(t *testing.T) {
	var out strings.Builder
	require.NoError(t, run(t.Context(), nil, &out, io.Discard))
	for _, b := range benchmarks {
		assert.Contains(t, out.String(), "  "+b.name+" ")
	}
}

func TestANameThatThereIsNotIsAnError(t *testing.T) {
	var log strings.Builder
	assert.ErrorContains(t, run(t.Context(), []string{"packing"}, io.Discard, &log), `no benchmark "packing"`)
	assert.Contains(t, log.String(), "churn")
}

func TestEachBenchmarkHasItsHelpAndTakesNoArguments(t *testing.T) {
	for _, b := range benchmarks {
		if b.name == "go-benchmarks" {
			continue
		}
		var log strings.Builder
		require.NoError(t, run(t.Context(), []string{b.name, "--help"}, io.Discard, &log))
		for _, setting := range strings.Fields(b.settings) {
			assert.Contains(t, log.String(), "-"+strings.ToLower(setting), b.name)
		}
	}
}

// The settings that a benchmark takes are named in the Makefile, which hands them over.
func TestTheMakefileHandsAllSettingsOver(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	require.NoError(t, err)
	var settings []string
	for _, b := range benchmarks {
		settings = append(settings, strings.Fields(b.settings)...)
	}
	slices.Sort(settings)
	for _, setting := range slices.Compact(settings) {
		handed := "$(call setting," + setting + "," + strings.ToLower(setting) + ")"
		assert.True(t, strings.Contains(string(makefile), handed) && strings.Contains(string(makefile), "\n"+setting+" ?=\n"), setting)
	}
}
