package podmetrics

import (
	"context"
	"slices"
	"sync"
)

// turns lets so many in at a time. While more wait, the namespaces take turns: whoever has many pods, or
// slow ones, does not keep those of others waiting.
type turns struct {
	mu   sync.Mutex
	free int
	// waiting are those who wait, by namespace, and next is whose turn it is: each namespace once.
	waiting map[string][]chan struct{}
	next    []string
}

func newTurns(atOnce int) *turns { return &turns{free: atOnce, waiting: map[string][]chan struct{}{}} }

// enter waits for a place, which leave gives back. It reports false where the context ends before.
func (t *turns) enter(ctx context.Context, namespace string) bool {
	t.mu.Lock()
	if t.free > 0 {
		t.free--
		t.mu.Unlock()
		return true
	}
	turn := make(chan struct{})
	if len(t.waiting[namespace]) == 0 {
		t.next = append(t.next, namespace)
	}
	t.waiting[namespace] = append(t.waiting[namespace], turn)
	t.mu.Unlock()
	select {
	case <-turn:
		return true
	case <-ctx.Done():
		t.giveUp(namespace, turn)
		return false
	}
}

// giveUp takes one back who waits, or who was just let in.
func (t *turns) giveUp(namespace string, turn chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := slices.Index(t.waiting[namespace], turn)
	if at < 0 {
		t.pass()
		return
	}
	t.keep(namespace, slices.Delete(t.waiting[namespace], at, at+1))
	if t.waiting[namespace] == nil {
		t.next = slices.DeleteFunc(t.next, func(other string) bool { return other == namespace })
	}
}

// leave gives a place to whoever's turn it is.
func (t *turns) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pass()
}

func (t *turns) pass() {
	if len(t.next) == 0 {
		t.free++
		return
	}
	namespace := t.next[0]
	turn := t.waiting[namespace][0]
	t.next = t.next[1:]
	t.keep(namespace, t.waiting[namespace][1:])
	if t.waiting[namespace] != nil {
		t.next = append(t.next, namespace)
	}
	close(turn)
}

// keep are those of a namespace who still wait.
func (t *turns) keep(namespace string, waiting []chan struct{}) {
	if len(waiting) == 0 {
		delete(t.waiting, namespace)
		return
	}
	t.waiting[namespace] = waiting
}
