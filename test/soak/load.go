package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/emulation"
)

// load is what clients ask of one model.
type load struct {
	model model
	tap   *emulation.Tap

	mutex sync.Mutex
	// steps are the rates so far, each from its time on.
	steps []rate
	// sent and failed count requests.
	sent, failed int
}

// rate in requests per second holds from a time on.
type rate struct {
	From  time.Time `json:"from"`
	Value float64   `json:"requestsPerSecond"`
}

// ask lets clients ask a model until the end.
func (w *world) ask(m model, url string) *load {
	l := &load{model: m, tap: emulation.NewTap(w.running, input, output)}
	traffic := emulation.Traffic{URL: url, Model: m.id, Requests: l.tap, Start: l.tap.Start(), Observe: func(o emulation.Outcome) {
		l.mutex.Lock()
		defer l.mutex.Unlock()
		l.sent++
		if o.Failed {
			l.failed++
		}
	}}
	w.wait.Go(func() {
		if _, err := traffic.Play(w.running); err != nil && !errors.Is(err, context.Canceled) {
			w.fail(err)
		}
	})
	l.set(m.least)
	return l
}

func (l *load) set(value float64) {
	l.mutex.Lock()
	l.steps = append(l.steps, rate{time.Now(), value})
	l.mutex.Unlock()
	l.tap.Set(value)
}

// vary changes the rate now and then until the context ends.
func (l *load) vary(ctx context.Context, random *rand.Rand) {
	for {
		// To a tenth, so that people can read it.
		l.set(math.Round(10*(l.model.least+random.Float64()*(l.model.most-l.model.least))) / 10)
		if !pause(ctx, time.Duration(15+random.IntN(25))*time.Second) {
			return
		}
	}
}

// pause waits; false means that the context ended before.
func pause(ctx context.Context, long time.Duration) bool {
	timer := time.NewTimer(long)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// serve answers requests at a new address until everything ends.
func (w *world) serve(handler http.Handler) (address string, err error) {
	if address, err = w.cluster.FreeAddress(); err != nil {
		return "", err
	}
	listener, err := (&net.ListenConfig{}).Listen(w.running, "tcp", address)
	if err != nil {
		return "", fmt.Errorf("start the router: %w", err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	w.wait.Go(func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			w.fail(fmt.Errorf("the router ended: %w", err))
		}
	})
	context.AfterFunc(w.running, func() { _ = server.Close() })
	return address, nil
}
