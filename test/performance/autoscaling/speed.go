package autoscaling

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/replay"
)

// measureSpeed replays one trial once, in hybrid mode, and says how long it took and
// how much memory.
func measureSpeed(o *options, t trial, out io.Writer) error {
	o.workers, o.seeds = 1, 1
	began := time.Now()
	prepared, err := prepare(o, t)
	if err != nil {
		return fmt.Errorf("%s: %w", t, err)
	}
	r, _, err := prepared[0].Play(replay.Play{Policy: "hybrid", Startup: t.startups[0]})
	if err != nil {
		return fmt.Errorf("%s: %w", t, err)
	}
	took := time.Since(began)
	bytes, source := peakMemory()
	tell(out, "%s, hybrid, start-up %g s: %d requests in %s of wall time with one worker, the reading and the bound included\n",
		t, r.StartupSeconds, r.Requests, took.Round(10*time.Millisecond))
	tell(out, "peak memory %d MiB (%s); %.2f%% attained at %.2f times the bound\n",
		bytes>>20, source, 100*r.Attainment, r.CostOverBound)
	return nil
}

// processorTime is what this process has taken of the processors; false where the system
// does not tell.
func processorTime() (time.Duration, bool) {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0, false
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), true
}

// peakMemory is the most that the process held at one time, in bytes, and who says so.
// Where the kernel tells nothing it is what Go has taken from it, which never shrinks.
func peakMemory() (bytes uint64, source string) {
	if status, err := os.ReadFile("/proc/self/status"); err == nil {
		if bytes, ok := highWater(string(status)); ok {
			return bytes, "resident, by the kernel"
		}
	}
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return memory.Sys, "taken from the system, by Go"
}

// highWater is the line VmHWM of a process' status page of Linux, which counts in units
// of 1024 bytes and calls them kB.
func highWater(status string) (bytes uint64, ok bool) {
	for line := range strings.Lines(status) {
		number, found := strings.CutPrefix(line, "VmHWM:")
		if !found {
			continue
		}
		number, found = strings.CutSuffix(strings.TrimSpace(number), " kB")
		kilo, err := strconv.ParseUint(strings.TrimSpace(number), 10, 54)
		return kilo << 10, found && err == nil
	}
	return 0, false
}
