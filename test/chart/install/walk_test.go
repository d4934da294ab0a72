package install

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/test/integration/conditiontest"
	"llmd.ai/workload-variant-autoscaler/test/page"
)

// walk goes through a page that starts a cluster of its own. Blocks share one shell's
// variables. A block that does not end goes on until the walk does, in a shell of its own.
func (r *reader) walk(t *testing.T, blocks []page.Block) {
	w := &reader{site: r.site, folder: r.folder, env: []string{"PATH=" + filepath.Join(r.folder, "bin") + ":" + os.Getenv("PATH"), "HOME=" + r.folder}}
	for _, block := range blocks {
		if sign, ok := block.Until(); ok {
			w.start(t, block, sign)
			continue
		}
		left := filepath.Join(r.folder, "environment")
		// What a step needs of the one before, such as the first samples, takes a while.
		conditiontest.Eventually(t, patience, block.Place, func() (string, bool) {
			out, err := w.shell(t.Context(), block.Text+"\nenv -0 > "+left)
			return out, err == nil
		})
		text, err := os.ReadFile(left) //nolint:gosec // it was just written
		require.NoError(t, err)
		w.env = strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
	}
}

// said is what a block printed so far.
type said struct {
	lock sync.Mutex
	text bytes.Buffer
}

func (s *said) Write(text []byte) (int, error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.text.Write(text)
}

func (s *said) String() string {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.text.String()
}

// start runs a block beside the next ones, and waits until it has printed the sign.
func (r *reader) start(t *testing.T, block page.Block, sign string) {
	t.Helper()
	command := exec.Command("bash", "-ec", block.Text) //nolint:gosec // a page of this repository; the end of the test ends it
	command.Dir, command.Env = r.folder, r.env
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out := &said{}
	command.Stdout, command.Stderr = out, out
	require.NoError(t, command.Start())
	ended := make(chan struct{})
	var failure error
	go func() {
		failure = command.Wait()
		close(ended)
	}()
	t.Cleanup(func() {
		// With all that it started, which is no mistake.
		_ = syscall.Kill(-command.Process.Pid, syscall.SIGTERM)
		<-ended
	})
	conditiontest.Eventually(t, patience, fmt.Sprintf("%q from %s", sign, block.Place), func() (string, bool) {
		select {
		case <-ended:
			require.Failf(t, "it ended", "%s: %v\n%s", block.Place, failure, out)
		default:
		}
		return out.String(), strings.Contains(out.String(), sign)
	})
}
