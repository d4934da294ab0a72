package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// load is what the judge replays. Policy is ours; told is unset where the autoscaler has to learn what a
// replica does.
type load struct {
	name, policy string
	arguments    []string
	told         bool
}

// loads are those of the judge. With data there are the recorded ones, too.
func loads(data string) []load {
	synthetic := func(name, policy string, told bool, more ...string) load {
		title := name
		if !told {
			title += ", learning"
		}
		return load{title, policy, append([]string{"--trace", "synthetic:" + name}, more...), told}
	}
	example := func(name string, more ...string) load {
		return load{strings.Join(append([]string{name}, more...), " "), "hybrid", append([]string{"--scenario", name}, more...), true}
	}
	all := []load{
		synthetic("step", "hybrid", true), synthetic("step", "hybrid", false), synthetic("ramp", "hybrid", true),
		synthetic("ramp", "hybrid", false), synthetic("on-off", "hybrid", true), synthetic("burst", "hybrid", true),
		synthetic("code", "hybrid", true, "--duration", "6h"), synthetic("chat", "hybrid", false, "--duration", "2h"),
		synthetic("ramp", "capacity-only", true), synthetic("on-off", "capacity-only", true),
		example("four-cheap"), example("spot"), example("failing-nodes"), example("two-models", "--cluster", "busy-85"),
	}
	if data != "" {
		for _, name := range []string{"conv", "code"} {
			trace := filepath.Join(data, "azure2023", "AzureLLMInferenceTrace_"+name+".csv")
			all = append(all, load{"azure " + name, "hybrid", []string{"--trace", trace, "--rate", "20"}, true})
		}
	}
	return all
}

// outcome is what came of one load with one seed.
type outcome struct {
	Cost       float64 `json:"cost"`
	Attainment float64 `json:"attainment"`
}

// measured is what was seen with one rule switched off, or with none.
type measured struct {
	// outcomes are by load, and for each by seed.
	outcomes [][]outcome
	// failures is how many scenarios of the closed loop failed at each check.
	failures map[string]int
}

// bench is where things are.
type bench struct {
	root, data          string
	scenarios, replayed int
	loads               []load
	workers             int
}

// measure builds the programs with a rule switched off, and runs them.
func (b *bench) measure(ctx context.Context, r *rule) (m *measured, err error) {
	folder, err := os.MkdirTemp("", "ablation-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	flags, err := overlay(r, b.root, folder)
	if err != nil {
		return nil, err
	}
	loop, replay := filepath.Join(folder, "closedloop"), filepath.Join(folder, "replay")
	if err := b.tool(ctx, append([]string{"test", "-c", "-vet=off", "-o", loop}, append(flags, "./test/closedloop")...)); err != nil {
		return nil, err
	}
	if err := b.tool(ctx, append([]string{"build", "-o", replay}, append(flags, "./cmd/kubectl-wva")...)); err != nil {
		return nil, err
	}
	m = &measured{}
	if m.failures, err = b.closedLoop(ctx, loop); err != nil {
		return nil, err
	}
	m.outcomes, err = b.replays(ctx, replay, folder)
	return m, err
}

// tool runs the Go tool.
func (b *bench) tool(ctx context.Context, arguments []string) error {
	command := exec.CommandContext(ctx, "go", arguments...) // #nosec G204: the arguments are made here
	command.Dir = b.root
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("go %s: %w\n%s", arguments[0], err, out)
	}
	return nil
}

// tallied is a line in which the closed loop says how many scenarios failed at a check.
var tallied = regexp.MustCompile(`([a-z]+): (\d+), among them \[`)

// closedLoop plays the scenarios and counts those that fail.
func (b *bench) closedLoop(ctx context.Context, program string) (map[string]int, error) {
	command := exec.CommandContext(ctx, program, "-test.run", "^TestSeeds$", "-seeds", strconv.Itoa(b.scenarios)) // #nosec G204: built here
	command.Dir = filepath.Join(b.root, "test", "closedloop")
	out, err := command.CombinedOutput()
	failures := map[string]int{}
	for _, match := range tallied.FindAllSubmatch(out, -1) {
		n, wrong := strconv.Atoi(string(match[2]))
		if wrong != nil {
			return nil, wrong
		}
		failures[string(match[1])] = n
	}
	if err != nil && len(failures) == 0 {
		return nil, fmt.Errorf("the closed loop says nothing of scenarios that fail: %w\n%s", err, out)
	}
	return failures, nil
}

// replays plays all loads with all seeds.
func (b *bench) replays(ctx context.Context, program, folder string) ([][]outcome, error) {
	learning := filepath.Join(folder, "learning.yaml")
	if err := untold(ctx, program, learning); err != nil {
		return nil, err
	}
	all, failed := make([][]outcome, len(b.loads)), make([]error, len(b.loads)*b.replayed)
	var group sync.WaitGroup
	free := make(chan struct{}, b.workers)
	for i := range b.loads {
		all[i] = make([]outcome, b.replayed)
		for seed := range b.replayed {
			group.Go(func() {
				free <- struct{}{}
				defer func() { <-free }()
				all[i][seed], failed[i*b.replayed+seed] = b.loads[i].replay(ctx, program, learning, seed+1)
			})
		}
	}
	group.Wait()
	return all, errors.Join(failed...)
}

// untold writes the built-in scenario in which the autoscaler is told nothing of what replicas do.
func untold(ctx context.Context, program, target string) error {
	text, err := exec.CommandContext(ctx, program, "replay", "--print-scenario").Output() // #nosec G204: built here
	if err != nil {
		return fmt.Errorf("print the scenario: %w", err)
	}
	const profile = "        profile:\n"
	if !bytes.Contains(text, []byte(profile)) {
		return errors.New("the built-in scenario has no profile where one was expected")
	}
	return os.WriteFile(target, bytes.ReplaceAll(text, []byte(profile), []byte("        learn: true\n"+profile)), 0o600)
}

// replay replays the load with one seed.
func (l *load) replay(ctx context.Context, program, learning string, seed int) (outcome, error) {
	arguments := append([]string{"replay", "--policy", l.policy, "--seed", strconv.Itoa(seed), "-o", "json"}, l.arguments...)
	if !l.told {
		arguments = append(arguments, "--scenario", learning)
	}
	var errs bytes.Buffer
	command := exec.CommandContext(ctx, program, arguments...) // #nosec G204: built here
	command.Stderr = &errs
	out, err := command.Output()
	if err != nil {
		return outcome{}, fmt.Errorf("replay %s: %w\n%s", l.name, err, errs.Bytes())
	}
	var results []outcome
	if err := json.Unmarshal(out, &results); err != nil || len(results) != 1 || results[0].Cost <= 0 {
		return outcome{}, fmt.Errorf("replay %s: expected one result with a cost, got %.200s", l.name, out)
	}
	return results[0], nil
}
