package localcluster

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const patience = 20 * time.Second

// supervisor is a cluster without a cluster: it only keeps children.
func supervisor(t *testing.T) *Cluster {
	c := &Cluster{launcher: newLauncher(), logs: t.TempDir(), failed: make(chan error, 16), children: map[string]*child{}}
	t.Cleanup(c.Stop)
	return c
}

func shell(name, script string) Process {
	return Process{Name: name, Path: "/bin/sh", Args: []string{"-c", script}}
}

// brief runs the script once it is told to: on a busy machine it would else end before its start
// was seen.
func brief(t *testing.T, c *Cluster, script string) {
	t.Helper()
	told := filepath.Join(t.TempDir(), "told")
	require.NoError(t, c.StartProcess(t.Context(), shell("brief", "until [ -e "+told+" ]; do :; done; "+script)))
	require.NoError(t, os.WriteFile(told, nil, 0o600))
}

func failure(t *testing.T, c *Cluster) error {
	select {
	case err := <-c.Failed():
		return err
	case <-time.After(patience):
		require.Fail(t, "no failure was told")
		return nil
	}
}

func TestADeathIsToldWithTheLastLines(t *testing.T) {
	c := supervisor(t)
	brief(t, c, "echo first words; echo last words >&2; exit 3")
	err := failure(t, c)
	assert.ErrorContains(t, err, "brief died (exit status 3)")
	assert.ErrorContains(t, err, "first words\n  last words")
	assert.ErrorContains(t, err, filepath.Join(c.Logs(), "brief.log"))
}

func TestADeathByASignalFromElsewhereIsTold(t *testing.T) {
	c := supervisor(t)
	require.NoError(t, c.StartProcess(t.Context(), shell("victim", "exec sleep 600")))
	require.NoError(t, c.children["victim"].cmd.Process.Kill())
	assert.ErrorContains(t, failure(t, c), "victim died (signal: killed)")
}

func TestAnAskedForEndIsNotTold(t *testing.T) {
	c := supervisor(t)
	ends := map[string]func(string) error{"killed": c.Kill, "terminated": c.Terminate}
	for name, end := range ends {
		require.NoError(t, c.StartProcess(t.Context(), shell(name, "exec sleep 600")))
		require.NoError(t, end(name))
		assert.False(t, alive(c.children[name].cmd.Process.Pid))
	}
	brief(t, c, "exit 1")
	assert.ErrorContains(t, failure(t, c), "brief died", "the first that is told is the one that nobody asked for")
	assert.Error(t, c.Kill("unknown"))
}

func TestAnEndBeforeReadyIsTheErrorOfTheStart(t *testing.T) {
	c := supervisor(t)
	process := shell("early", "echo cannot work; exit 1")
	process.Ready = func(context.Context) error { return errors.New("not yet") }
	err := c.StartProcess(t.Context(), process)
	require.ErrorContains(t, err, "early ended before it was ready")
	require.ErrorContains(t, err, "cannot work")
	assert.Empty(t, c.Failed(), "one death is told once")
	require.NoError(t, c.StartProcess(t.Context(), shell("early", "exec sleep 600")), "the name is free again")
	assert.ErrorContains(t, c.StartProcess(t.Context(), shell("early", "exec sleep 600")), "runs already")
}

func TestWhoNeverGetsReadyIsEnded(t *testing.T) {
	c := supervisor(t)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	process := shell("slow", "exec sleep 600")
	process.Ready = func(context.Context) error { return errors.New("the door is closed") }
	require.ErrorContains(t, c.StartProcess(ctx, process), "the door is closed")
	assert.Empty(t, c.children)
}

func TestRestartRunsTheSameAgain(t *testing.T) {
	c := supervisor(t)
	marker := filepath.Join(t.TempDir(), "marker")
	process := shell("again", `echo run >> "$MARKER"; exec sleep 600`)
	process.Env = []string{"MARKER=" + marker}
	ran := func(want string) func(context.Context) error {
		return func(context.Context) error {
			if got, _ := os.ReadFile(marker); string(got) != want {
				return errors.New("not yet")
			}
			return nil
		}
	}
	process.Ready = ran("run\n")
	require.NoError(t, c.StartProcess(t.Context(), process))
	first := c.children["again"].cmd.Process.Pid
	require.NoError(t, c.Kill("again"))
	require.NoError(t, os.Remove(marker))
	require.NoError(t, c.Restart(t.Context(), "again"))
	assert.NotEqual(t, first, c.children["again"].cmd.Process.Pid)
}

func TestStopKillsWhoIgnoresTheSignal(t *testing.T) {
	c := supervisor(t)
	process := shell("deaf", `trap "" TERM; echo listening; while :; do read -r _ < /dev/null; done`)
	require.NoError(t, c.StartProcess(t.Context(), process))
	require.Eventually(t, func() bool { return tail(c.children["deaf"].log) == "  listening" }, patience, 10*time.Millisecond)
	pid := c.children["deaf"].cmd.Process.Pid
	c.Stop()
	assert.False(t, alive(pid))
	assert.ErrorContains(t, c.StartProcess(t.Context(), shell("late", "exit")), "stopped")
}

func TestNoChildSeesTheClusterOrTheSettingsOfTheUser(t *testing.T) {
	t.Setenv("GODEBUG", "http2client=0")
	for _, name := range []string{
		"KUBECONFIG", "KUBERNETES_SERVICE_HOST", "WATCH_NAMESPACE", "CONTROLLER_INSTANCE", "LEADER_ELECT",
		"PROMETHEUS_BASE_URL", "WVA_LIMITED_MODE", "GLOBAL_OPT_INTERVAL", "HTTPS_PROXY",
	} {
		t.Setenv(name, "of the user")
	}
	c := supervisor(t)
	process := Process{Name: "curious", Path: "/usr/bin/env", Env: []string{"GLOBAL_OPT_INTERVAL=15s"}}
	require.NoError(t, c.StartProcess(t.Context(), process))
	require.Error(t, failure(t, c), "it tells and ends")
	told, err := os.ReadFile(filepath.Join(c.Logs(), "curious.log"))
	require.NoError(t, err)
	assert.NotContains(t, string(told), "of the user")
	assert.Contains(t, string(told), "PATH=")
	assert.Contains(t, string(told), "GODEBUG=http2client=0")
	assert.Contains(t, string(told), "GLOBAL_OPT_INTERVAL=15s")
}

func TestChildrenAreNotInTheGroupThatCtrlCReaches(t *testing.T) {
	c := supervisor(t)
	require.NoError(t, c.StartProcess(t.Context(), shell("apart", "exec sleep 600")))
	group, err := syscall.Getpgid(c.children["apart"].cmd.Process.Pid)
	require.NoError(t, err)
	assert.NotEqual(t, syscall.Getpgrp(), group)
}
