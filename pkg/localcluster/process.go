package localcluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	// readyDeadline bounds how long a child may take to become ready; a loaded machine of two cores needs
	// a fraction of it.
	readyDeadline = time.Minute
	// readyInterval is the time between two questions whether a child is ready.
	readyInterval = 25 * time.Millisecond
	// stopDeadline is how long a child may take to end after SIGTERM before it is killed.
	stopDeadline = 5 * time.Second
	// tailBytes and tailLines bound what a failure shows of a log.
	tailBytes, tailLines = 8 << 10, 12
)

// Process is a program that runs as a child of the cluster.
type Process struct {
	// Name is unique in the cluster; the log file is named after it.
	Name string
	// Path and Args are the file of the program and its arguments, without the program's own name.
	Path string
	Args []string
	// Env is all that the program finds in its environment beside a few variables of this process, such as PATH,
	// HOME, TMPDIR and GODEBUG.
	Env []string
	// Ready returns nil as soon as the program does its work. It is asked again at short intervals. Nil:
	// ready once it runs.
	Ready func(ctx context.Context) error
}

// layer is when a child stops: the highest one first.
type layer int

const (
	storeLayer   layer = iota // etcd
	apiLayer                  // kube-apiserver
	clusterLayer              // what makes a cluster of it
	programLayer              // StartProcess
)

// child is a running or ended Process.
type child struct {
	process  Process
	layer    layer
	log      string
	cmd      *exec.Cmd
	done     chan struct{} // closed when it has ended
	ready    bool          // from here on an end is a failure; guarded by Cluster.mutex
	expected bool          // it was told to end; guarded by Cluster.mutex
}

// launcher starts processes from one operating system thread that lives until close. A parent-death signal
// is sent when the *thread* that started the child ends, and Go ends threads as it pleases.
type launcher struct {
	work chan func()
}

func newLauncher() *launcher {
	l := &launcher{work: make(chan func())}
	go func() {
		// Never unlocked: the thread ends with this goroutine, and with it any child that is left.
		runtime.LockOSThread()
		for work := range l.work {
			work()
		}
	}()
	return l
}

func (l *launcher) start(cmd *exec.Cmd) error {
	result := make(chan error, 1)
	l.work <- func() { result <- cmd.Start() }
	return <-result
}

func (l *launcher) close() { close(l.work) }

// StartProcess starts a program as a child and waits until it is ready. Its death is reported by Failed
// unless it was asked for, and Stop ends it before the cluster's own parts.
func (c *Cluster) StartProcess(ctx context.Context, process Process) error {
	return c.start(ctx, programLayer, process)
}

func (c *Cluster) start(ctx context.Context, in layer, process Process) error {
	begin := time.Now()
	one, err := c.launch(in, process)
	if err != nil {
		return err
	}
	err = awaitReady(ctx, one)
	if err == nil {
		err = c.markReady(one, time.Since(begin))
	}
	if err != nil {
		_ = c.end(one, syscall.SIGKILL)
		c.forget(one)
	}
	return err
}

func (c *Cluster) launch(in layer, process Process) (*child, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.stopped {
		return nil, fmt.Errorf("start %s: the cluster is stopped", process.Name)
	}
	if old := c.children[process.Name]; old != nil {
		select {
		case <-old.done:
		default:
			return nil, fmt.Errorf("start %s: a child of that name runs already", process.Name)
		}
	}
	path := filepath.Join(c.logs, process.Name+".log")
	log, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the log of %s: %w", process.Name, err)
	}
	defer func() { _ = log.Close() }()
	// Without a context: a child lives until it is told to end, not as long as the call that starts it.
	cmd := &exec.Cmd{Path: process.Path, Args: append([]string{process.Path}, process.Args...)}
	cmd.Env = append(environment(), process.Env...)
	cmd.Stdout, cmd.Stderr = log, log
	// A group of its own, so that Ctrl-C in a terminal reaches the parent alone, which stops in order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if err := c.launcher.start(cmd); err != nil {
		return nil, fmt.Errorf("start %s: %w", process.Name, err)
	}
	one := &child{process: process, layer: in, log: path, cmd: cmd, done: make(chan struct{})}
	c.children[process.Name] = one
	go c.watch(one)
	return one, nil
}

// markReady makes every later end of the child a failure, and tells that it is ready.
func (c *Cluster) markReady(one *child, took time.Duration) error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	select {
	case <-one.done:
		return endedEarly(one)
	default:
		one.ready = true
		if c.options.Started != nil {
			c.options.Started(one.process.Name, took)
		}
		return nil
	}
}

// watch reports a death that nobody asked for.
func (c *Cluster) watch(one *child) {
	err := one.cmd.Wait()
	c.mutex.Lock()
	defer c.mutex.Unlock()
	close(one.done)
	if one.expected || !one.ready {
		return // asked for, or told by start
	}
	select {
	case c.failed <- deathOf(one, err):
	default: // the first deaths are told; nobody listens to more
	}
}

// DeathError is what Failed tells: a child that died without being asked to.
type DeathError struct {
	// Name is that of the process, and How its end with the last lines of its log.
	Name, How string
}

// Error implements error.
func (d *DeathError) Error() string { return d.Name + " died " + d.How }

func deathOf(one *child, err error) error {
	how := "it ended by itself"
	if err != nil {
		how = err.Error()
	}
	return &DeathError{Name: one.process.Name, How: fmt.Sprintf("(%s); the last lines of %s:\n%s", how, one.log, tail(one.log))}
}

func endedEarly(one *child) error {
	return fmt.Errorf("%s ended before it was ready; the last lines of %s:\n%s", one.process.Name, one.log, tail(one.log))
}

// awaitReady waits until the child is ready, ends, or takes too long.
func awaitReady(ctx context.Context, one *child) error {
	if one.process.Ready == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, readyDeadline)
	defer cancel()
	ticker := time.NewTicker(readyInterval)
	defer ticker.Stop()
	for {
		err := one.process.Ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-one.done:
			return endedEarly(one)
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready (%w): %w; the last lines of %s:\n%s", one.process.Name, ctx.Err(), err, one.log, tail(one.log))
		case <-ticker.C:
		}
	}
}

// Kill ends a child with SIGKILL, as a crash would, and waits for its end. Failed does not tell it. Restart
// starts it again.
func (c *Cluster) Kill(name string) error { return c.signal(name, syscall.SIGKILL) }

// Terminate ends a child with SIGTERM, and with SIGKILL if that takes too long, and waits for its end.
func (c *Cluster) Terminate(name string) error { return c.signal(name, syscall.SIGTERM) }

// Restart starts a child again, as it was started first, ending it if it still runs, and waits until it is
// ready. When that fails it can be tried again.
func (c *Cluster) Restart(ctx context.Context, name string) error {
	one, err := c.childNamed(name)
	if err != nil {
		return err
	}
	if err := c.end(one, syscall.SIGTERM); err != nil {
		return err
	}
	if err := c.start(ctx, one.layer, one.process); err != nil {
		c.mutex.Lock()
		defer c.mutex.Unlock()
		if c.children[name] == nil {
			c.children[name] = one
		}
		return err
	}
	return nil
}

func (c *Cluster) signal(name string, signal syscall.Signal) error {
	one, err := c.childNamed(name)
	if err != nil {
		return err
	}
	return c.end(one, signal)
}

func (c *Cluster) childNamed(name string) (*child, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if one := c.children[name]; one != nil {
		return one, nil
	}
	return nil, fmt.Errorf("the cluster has no child %q", name)
}

func (c *Cluster) forget(one *child) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.children[one.process.Name] == one {
		delete(c.children, one.process.Name)
	}
}

// end signals a child and waits for its end.
func (c *Cluster) end(one *child, signal syscall.Signal) error {
	c.mutex.Lock()
	one.expected = true
	c.mutex.Unlock()
	if err := one.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal %s: %w", one.process.Name, err)
	}
	deadline := time.NewTimer(stopDeadline)
	defer deadline.Stop()
	select {
	case <-one.done:
		return nil
	case <-deadline.C:
	}
	if err := one.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill %s: %w", one.process.Name, err)
	}
	<-one.done
	return nil
}

// inherited are the variables that a child shares with this process: where things are, how Go runs, and how
// time and text look. Any other could lead it to a cluster that the user has, or be a setting of the programs.
var inherited = []string{
	"PATH", "HOME", "TMPDIR", "TZ", "LANG", "LC_ALL",
	"GODEBUG", "GOGC", "GOMAXPROCS", "GOMEMLIMIT", "GOTRACEBACK", "GORACE", "GOCOVERDIR",
}

// environment is what every child gets of the environment of this process.
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return !slices.Contains(inherited, name)
	})
}

// tail returns the last lines of a log, indented.
func tail(path string) string {
	file, err := os.Open(path)
	if err != nil {
		return "  (" + err.Error() + ")"
	}
	defer func() { _ = file.Close() }()
	if info, err := file.Stat(); err == nil && info.Size() > tailBytes {
		_, _ = file.Seek(-tailBytes, io.SeekEnd)
	}
	content, err := io.ReadAll(file)
	if err != nil {
		return "  (" + err.Error() + ")"
	}
	lines := bytes.Split(bytes.TrimSpace(content), []byte("\n"))
	lines = lines[max(0, len(lines)-tailLines):]
	return "  " + string(bytes.Join(lines, []byte("\n  ")))
}
