package localcluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
)

// Cluster is a running cluster. Its methods may be called from several goroutines.
type Cluster struct {
	options   Options
	dir       string
	removeDir func() error // nil when the directory was given
	logs      string
	block     *block
	authority *authority
	server    string // URL of the API server
	admin     *rest.Config
	prom      string // URL of Prometheus, empty without it
	scheduler string // URL of the variant scheduler, empty without it
	launcher  *launcher
	failed    chan error

	mutex    sync.Mutex
	children map[string]*child
	stopped  bool
}

// Start starts a cluster and returns when all of it is ready: the API server answers, the manifests are
// applied, every other part is healthy, and with KWOK the nodes take pods. The context bounds the start only;
// Stop ends the cluster. On an error nothing is left running.
func Start(ctx context.Context, options Options) (*Cluster, error) {
	options, err := options.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("start a local cluster: %w", err)
	}
	c := &Cluster{options: options, failed: make(chan error, 16), children: map[string]*child{}}
	err = c.prepare()
	if err == nil {
		err = c.startAll(ctx)
	}
	if err != nil {
		c.Stop()
		return nil, fmt.Errorf("start a local cluster: %w", err)
	}
	return c, nil
}

func (c *Cluster) prepare() error {
	c.launcher = newLauncher()
	var err error
	if c.dir, c.removeDir, err = directory(c.options.Dir); err != nil {
		return err
	}
	if c.logs = c.options.Logs; c.logs == "" {
		c.logs = filepath.Join(c.dir, "logs")
	}
	if c.logs, err = filepath.Abs(c.logs); err != nil {
		return fmt.Errorf("find the directory of the logs: %w", err)
	}
	if err := os.MkdirAll(c.logs, 0o755); err != nil {
		return fmt.Errorf("make the directory of the logs: %w", err)
	}
	if c.block, err = reserveBlock(); err != nil {
		return err
	}
	return c.writeCertificates()
}

// directory makes the cluster's directory; Stop has to remove it when there is a way to.
func directory(wanted string) (path string, remove func() error, err error) {
	if wanted == "" {
		return TemporaryDirectory("")
	}
	if path, err = filepath.Abs(wanted); err != nil {
		return "", nil, fmt.Errorf("find the directory of the cluster: %w", err)
	}
	// Keys of the cluster lie here.
	if err := os.MkdirAll(path, 0o700); err != nil {
		return "", nil, fmt.Errorf("make the directory of the cluster: %w", err)
	}
	return path, nil, nil
}

// startAll starts the store and the API server, then all that depends on them at the same time.
func (c *Cluster) startAll(ctx context.Context) error {
	if err := c.startStore(ctx); err != nil {
		return err
	}
	if err := c.startAPIServer(ctx); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	components := c.options.Components
	if components.ControllerManager {
		group.Go(func() error { return c.startControllerManager(ctx) })
	}
	if components.Scheduler {
		group.Go(func() error { return c.startScheduler(ctx) })
	}
	if components.Kwok {
		group.Go(func() error { return c.startKwok(ctx) })
	}
	if components.Prometheus != nil {
		group.Go(func() error {
			if err := c.startPrometheus(ctx); err != nil || components.ExternalMetrics == "" {
				return err
			}
			return c.startExternalMetrics(ctx)
		})
	}
	group.Go(func() error { return c.createNodes(ctx) })
	group.Go(func() error {
		if err := c.Apply(ctx, c.options.Manifests...); err != nil {
			return err
		}
		if components.VariantScheduler == nil {
			return nil
		}
		return c.startVariantScheduler(ctx)
	})
	return group.Wait()
}

// Failed tells of children that died without being asked to, each as a *DeathError. It holds the first deaths until
// they are read and is never closed.
func (c *Cluster) Failed() <-chan error { return c.failed }

// Logs is the directory of the log files, one per child.
func (c *Cluster) Logs() string { return c.logs }

// FreeAddress returns an address (host and port) at which one more program of this cluster can listen.
func (c *Cluster) FreeAddress() (string, error) {
	port, err := c.block.freePort()
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s:%d", c.block.host(), port), nil
}

// Stop ends every child, programs first and the store last, each layer at once: SIGTERM, then SIGKILL after a
// deadline. It removes the cluster's directory if Start made it, and may be called twice.
func (c *Cluster) Stop() {
	c.mutex.Lock()
	stopped := c.stopped
	c.stopped = true
	c.mutex.Unlock()
	if stopped {
		return
	}
	for in := programLayer; in >= storeLayer; in-- {
		c.stopLayer(in)
	}
	c.launcher.close()
	if c.block != nil {
		c.block.release()
	}
	if c.removeDir != nil {
		_ = c.removeDir()
	}
}

func (c *Cluster) stopLayer(in layer) {
	var group sync.WaitGroup
	c.mutex.Lock()
	for _, one := range c.children {
		if one.layer == in {
			group.Go(func() { _ = c.end(one, syscall.SIGTERM) })
		}
	}
	c.mutex.Unlock()
	group.Wait()
}
