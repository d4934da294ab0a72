package localcluster

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// orphanVariable turns the test binary into the parent that the test kills.
const orphanVariable = "LOCALCLUSTER_TEST_ORPHAN"

// beOrphaned starts a cluster and a program, tells the process ids of all children and waits to be killed.
func beOrphaned() int {
	ctx := context.Background()
	c, err := Start(ctx, Options{})
	if err == nil {
		err = c.StartProcess(ctx, Process{Name: "idle", Path: "/bin/sleep", Args: []string{"600"}})
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	for _, one := range c.children {
		fmt.Printf("child %d %s\n", one.cmd.Process.Pid, one.process.Name)
	}
	fmt.Println("all told")
	select {}
}

func TestNothingOutlivesAKilledParent(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	self, err := os.Executable()
	require.NoError(t, err)
	parent := exec.Command(self)
	parent.Env = append(os.Environ(), orphanVariable+"=yes")
	output, err := parent.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, parent.Start())
	t.Cleanup(func() { _ = parent.Process.Kill(); _ = parent.Wait() })

	children := map[int]string{}
	told := false
	for lines := bufio.NewScanner(output); !told && lines.Scan(); {
		var pid int
		var name string
		if _, err := fmt.Sscanf(lines.Text(), "child %d %s", &pid, &name); err == nil {
			children[pid] = name
		} else {
			require.Equal(t, "all told", lines.Text())
			told = true
		}
	}
	require.True(t, told, "the parent ended early")
	require.Len(t, children, 3)
	for pid, name := range children {
		require.True(t, alive(pid), "%s should run before its parent is killed", name)
	}

	require.NoError(t, parent.Process.Kill())
	for pid, name := range children {
		require.Eventually(t, func() bool { return !alive(pid) }, 10*time.Second, 20*time.Millisecond, "%s outlives its parent", name)
	}
	require.Error(t, parent.Wait(), "it was killed, and only now has let go of everything")
	assert.Len(t, left(t, temporary), 1, "nobody was there to remove its directory")
	_, remove, err := TemporaryDirectory("")
	require.NoError(t, err)
	require.NoError(t, remove())
	assert.Empty(t, left(t, temporary), "the next one does")
}

// left are the temporary directories in a directory.
func left(t *testing.T, in string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(in, temporaryPrefix+"*"))
	require.NoError(t, err)
	return found
}

// alive says whether a process runs; a zombie that nobody has waited for does not.
func alive(pid int) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, state, found := strings.Cut(string(status), ") ")
	return found && !strings.HasPrefix(state, "Z")
}
