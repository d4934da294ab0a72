package podmetrics

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// A namespace with very many slow pods delays a pod of another one by the time of one scrape at most.
func TestNamespacesTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const takes, many = 5 * time.Second, 1000
		c := newTurns(4)
		begin, waited, lock := time.Now(), map[string]time.Duration{}, sync.Mutex{}
		visit := func(namespace, name string) {
			if c.enter(t.Context(), namespace) {
				lock.Lock()
				waited[name] = time.Since(begin)
				lock.Unlock()
				<-time.After(takes)
				c.leave()
			}
		}
		for i := range many {
			go visit("crowd", fmt.Sprint("crowd-", i))
			synctest.Wait()
		}
		for i := range 3 {
			go visit("other", fmt.Sprint("other-", i))
			synctest.Wait()
		}
		<-time.After(takes * many / 4)
		synctest.Wait()
		for i := range 3 {
			assert.LessOrEqual(t, waited[fmt.Sprint("other-", i)], 2*takes)
		}
		<-time.After(2 * takes)
		synctest.Wait()
		assert.Len(t, waited, many+3, "all had their turn")
		assert.Equal(t, 4, c.free)
		assert.Empty(t, c.next)
		assert.Empty(t, c.waiting)
	})
}

// Who gives up leaves no place taken, and none of those behind it waiting.
func TestWhoGivesUpTakesNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTurns(1)
		assert.True(t, c.enter(t.Context(), "a"))
		ctx, cancel := context.WithCancel(t.Context())
		let := make([]atomic.Bool, 4)
		for i, namespace := range []string{"b", "b", "c"} {
			go func() { let[i].Store(c.enter(ctx, namespace)) }()
			synctest.Wait()
		}
		go func() { let[3].Store(c.enter(t.Context(), "c")) }()
		synctest.Wait()
		cancel()
		synctest.Wait()
		assert.Len(t, c.waiting["c"], 1)
		c.leave()
		synctest.Wait()
		for i := range let {
			assert.Equal(t, i == 3, let[i].Load(), i)
		}
		c.leave()
		assert.Equal(t, 1, c.free)
		assert.Empty(t, c.next)

		// It was let in at the moment in which it gave up.
		assert.True(t, c.enter(t.Context(), "a"))
		turn := make(chan struct{})
		c.waiting["d"], c.next = []chan struct{}{turn}, []string{"d"}
		c.leave()
		c.giveUp("d", turn)
		assert.Equal(t, 1, c.free)
	})
}
