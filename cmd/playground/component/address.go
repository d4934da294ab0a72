package component

import (
	"net/netip"
	"sync"
)

// kept is how many addresses at the end of the block are never given to pods: the cluster's own programs
// listen there.
const kept = 256

// addressSequence hands out the addresses of a block one after the other and starts over at its end. KWOK's
// own pool gives the address of a deleted pod to the next one, whose model server could then not listen
// because the old one is still draining; here an address rests until the whole block was used.
type addressSequence struct {
	mutex sync.Mutex
	block netip.Prefix
	last  int // offset into the block of the address that was given last
}

func newAddressSequence(block netip.Prefix) *addressSequence {
	return &addressSequence{block: block.Masked()}
}

// size is the number of addresses for pods: offsets 1 to size.
func (s *addressSequence) size() int {
	return 1<<(s.block.Addr().BitLen()-s.block.Bits()) - kept - 1
}

func (s *addressSequence) next() string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.last = s.last%s.size() + 1
	bytes := s.block.Addr().As4()
	bytes[2] += byte(s.last >> 8)
	bytes[3] += byte(s.last)
	return netip.AddrFrom4(bytes).String()
}

// skip moves the sequence behind an address that is in use: after a restart the pods of the old process still
// have theirs.
func (s *addressSequence) skip(used string) {
	address, err := netip.ParseAddr(used)
	if err != nil || !s.block.Contains(address) {
		return
	}
	bytes, base := address.As4(), s.block.Addr().As4()
	offset := int(bytes[2]-base[2])<<8 + int(bytes[3]-base[3])
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if offset > s.last && offset <= s.size() {
		s.last = offset
	}
}
