package simulation

// prefixCache are the blocks of prompts that are computed and still there. Those that
// requests hold are part of what the engine counts as held; the others stand in a list, in
// the order in which they were let go.
type prefixCache struct {
	blocks map[uint64]*block
	// idle is the list's end, in a ring: idle.next was let go first. tokens are those of
	// the list.
	idle   block
	tokens int
}

// block is one computed block.
type block struct {
	number uint64
	tokens int
	// users is how many running requests hold it. Without any it is in the list.
	users          int
	next, previous *block
}

func newPrefixCache() *prefixCache {
	c := &prefixCache{blocks: map[uint64]*block{}}
	c.idle.next, c.idle.previous = &c.idle, &c.idle
	return c
}

// find lets a request that enters the batch begin behind what is computed already, but
// for its last token.
func (e *Engine) find(s *sequence) {
	found := int(e.hits * float64(s.request.Input))
	if e.prefix != nil && s.request.Prompt != nil {
		var shared int
		found, shared = e.prefix.take(s)
		e.held -= shared
	}
	s.computed = min(found, s.target-1)
	e.counts.Found += uint64(s.computed)
}

// at is the i-th block of a request's prompt, if it is computed and is of so many tokens
// as the prompt has left behind those before it.
func (c *prefixCache) at(r *Request, i, before int) *block {
	if i >= r.Prompt.Blocks() {
		return nil
	}
	if b := c.blocks[r.Prompt.Number(i)]; b != nil && b.tokens <= r.Input-before {
		return b
	}
	return nil
}

// take has a request hold the computed blocks that its prompt begins with, and returns
// the number of their tokens. Those of them that others hold already, which need no place
// of their own, are shared.
func (c *prefixCache) take(s *sequence) (found, shared int) {
	for b := c.at(&s.request, 0, 0); b != nil; b = c.at(&s.request, len(s.kept), s.sharing) {
		if b.users == 0 {
			c.remove(b)
		} else {
			shared += b.tokens
		}
		b.users++
		s.kept = append(s.kept, b)
		s.sharing += b.tokens
	}
	return s.sharing, shared
}

// held is how many tokens of a waiting request others hold, so that it needs no place for
// them.
func (c *prefixCache) held(r *Request) (tokens int) {
	before := 0
	for i := 0; ; i++ {
		b := c.at(r, i, before)
		if b == nil {
			return tokens
		}
		if before += b.tokens; b.users > 0 {
			tokens += b.tokens
		}
	}
}

// keep adds the blocks that a request has computed by the end of the running iteration.
// Where a trace repeats a number that should be new, the request keeps no more.
func (c *prefixCache) keep(s *sequence) {
	prompt := s.request.Prompt
	for i := len(s.kept); i < prompt.Blocks(); i++ {
		tokens := min(prompt.Block, s.request.Input-i*prompt.Block)
		if s.sharing+tokens > s.computed || c.blocks[prompt.Number(i)] != nil {
			return
		}
		b := &block{number: prompt.Number(i), tokens: tokens, users: 1}
		c.blocks[b.number] = b
		s.kept = append(s.kept, b)
		s.sharing += tokens
	}
}

// letGo ends a request's hold of its blocks, the last one first, and returns the tokens
// of those that others still hold.
func (c *prefixCache) letGo(s *sequence) (stay int) {
	for i := len(s.kept) - 1; i >= 0; i-- {
		b := s.kept[i]
		s.kept[i] = nil
		b.users--
		if b.users > 0 {
			stay += b.tokens
			continue
		}
		last := c.idle.previous
		b.previous, b.next = last, &c.idle
		last.next, c.idle.previous = b, b
		c.tokens += b.tokens
	}
	s.kept, s.sharing = s.kept[:0], 0
	return stay
}

// remove takes a block out of the list.
func (c *prefixCache) remove(b *block) {
	b.previous.next, b.next.previous = b.next, b.previous
	b.previous, b.next = nil, nil
	c.tokens -= b.tokens
}

// shrink forgets what was let go first until at most so many tokens are left in the list.
func (c *prefixCache) shrink(room int) {
	for c.tokens > room {
		b := c.idle.next
		c.remove(b)
		delete(c.blocks, b.number)
	}
}
