package component

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/spf13/pflag"
	"go.etcd.io/etcd/server/v3/embed"
)

// etcdStart bounds how long etcd may take until it serves.
const etcdStart = time.Minute

// runEtcd serves one member that is its own cluster. It listens on a Unix socket, so that no port can be taken
// and nobody but the owner of its directory can reach the store behind the API server's back.
func runEtcd(ctx context.Context, args []string) error {
	flags := pflag.NewFlagSet("etcd", pflag.ContinueOnError)
	dataDir := flags.String("data-dir", "", "Directory of the store.")
	socket := flags.String("listen-socket", "", "Path of the Unix socket for clients.")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *dataDir == "" || *socket == "" {
		return errors.New("etcd needs --data-dir and --listen-socket")
	}
	server, err := embed.StartEtcd(etcdConfig(*dataDir, *socket))
	if err != nil {
		return fmt.Errorf("start etcd in %s: %w", *dataDir, err)
	}
	defer server.Close()
	select {
	case <-server.Server.ReadyNotify():
	case err := <-server.Err():
		return fmt.Errorf("etcd in %s: %w", *dataDir, err)
	case <-time.After(etcdStart):
		return fmt.Errorf("etcd in %s does not serve after %s", *dataDir, etcdStart)
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-server.Err():
		return fmt.Errorf("etcd in %s: %w", *dataDir, err)
	}
}

func etcdConfig(dataDir, socket string) *embed.Config {
	config := embed.NewConfig()
	config.Dir = dataDir
	config.ListenClientUrls = []url.URL{{Scheme: "unix", Path: socket}}
	// There are no peers. The addresses that the member advertises keep their defaults: it is only known by
	// them, and nothing listens there.
	config.ListenPeerUrls = nil
	config.LogLevel = "warn"
	// The default comes with the original's flags and not with its configuration; without it every request is
	// a slow one in the log.
	config.WarningUnaryRequestDuration = embed.DefaultWarningUnaryRequestDuration
	// The store dies with its cluster, so nothing is worth the wait for a disk.
	config.UnsafeNoFsync = true
	// A single member elects itself; the default of a second is for networks.
	config.TickMs = 20
	config.ElectionMs = 200
	return config
}
