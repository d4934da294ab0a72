package sweep

import "sync"

// Each makes n things, several at a time.
func Each[T any](workers, n int, one func(i int) (T, error)) ([]T, error) {
	p := newPool(workers, nil, nil)
	all, problems := make([]T, n), make([]error, n)
	p.each(n, func(i int) { p.run(func() { all[i], problems[i] = one(i) }) })
	return all, first(problems)
}

// pool runs work on so many processors as it may.
type pool struct {
	slots    chan struct{}
	progress func(done int)
	stop     func() bool
	memo     memo
	// keep, unless nil, is told of every run that was made.
	keep func(Kept)

	mutex  sync.Mutex
	done   int
	halted bool
}

func newPool(workers int, progress func(int), stop func() bool) *pool {
	return &pool{slots: make(chan struct{}, max(1, workers)), progress: progress, stop: stop, memo: memo{known: map[run]*ran{}}}
}

// each does n things side by side, and returns when all are done. What takes a processor
// goes through run.
func (p *pool) each(n int, do func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { do(i) })
	}
	all.Wait()
}

// few does n things in their order, so many of them side by side.
func (p *pool) few(n, atATime int, do func(i int)) {
	next := make(chan int)
	var all sync.WaitGroup
	for range min(n, atATime) {
		all.Go(func() {
			for i := range next {
				do(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	all.Wait()
}

// run does one thing when there is a processor for it.
func (p *pool) run(do func()) {
	p.slots <- struct{}{}
	defer func() { <-p.slots }()
	do()
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.done++
	if p.progress != nil {
		p.progress(p.done)
	}
}

// stopped reports whether the sweep is to end.
func (p *pool) stopped() bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if !p.halted && p.stop != nil {
		p.halted = p.stop()
	}
	return p.halted
}
