package localcluster

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"syscall"
)

// block is a reserved range of loopback addresses, 127.A.0.0/16.
type block struct {
	a    int
	lock net.Listener

	mu    sync.Mutex
	given map[int]bool // the ports of host that were given
}

// reserveBlock takes a block that no other cluster on this machine has. The lock is a Unix socket with an
// abstract name: the kernel gives it to one process only, takes it back when that process ends, and keeps
// such names per network namespace, which is also where loopback addresses live.
func reserveBlock() (*block, error) {
	// 127.0 is everybody's, and 127.127 and above are kept clear for name servers and the like.
	const first, count = 16, 100
	start := rand.IntN(count)
	for i := range count {
		a := first + (start+i)%count
		lock, err := net.Listen("unix", fmt.Sprintf("@wva-localcluster-127.%d", a))
		if err == nil {
			return &block{a: a, lock: lock, given: map[int]bool{}}, nil
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			return nil, fmt.Errorf("reserve the addresses 127.%d.0.0/16: %w", a, err)
		}
	}
	return nil, fmt.Errorf("reserve loopback addresses: all %d blocks belong to other clusters on this machine", count)
}

// prefix is the whole block.
func (b *block) prefix() string { return fmt.Sprintf("127.%d.0.0/16", b.a) }

// host is the address of the cluster's own programs; the last 256 addresses of the block are never given to
// pods.
func (b *block) host() string { return fmt.Sprintf("127.%d.255.1", b.a) }

// freePort finds a port of host that nothing listens at, and that was not given before: who was given one may
// not listen yet. Only a program that listens at the port on all addresses could still take it.
func (b *block) freePort() (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for {
		listener, err := net.Listen("tcp", net.JoinHostPort(b.host(), "0"))
		if err != nil {
			return 0, fmt.Errorf("find a free port of %s: %w", b.host(), err)
		}
		port := listener.Addr().(*net.TCPAddr).Port
		_ = listener.Close()
		if !b.given[port] {
			b.given[port] = true
			return port, nil
		}
	}
}

func (b *block) release() { _ = b.lock.Close() }
