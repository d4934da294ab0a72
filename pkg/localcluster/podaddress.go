package localcluster

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"
)

// kept is how many addresses at the end of the block are never given to pods: the cluster's own programs
// listen there.
const kept = 256

// PodAddresses hands out the addresses of a block one after the other and starts over at its end. KWOK's own
// pool gives the address of a deleted pod to the next one, whose model server could then not listen because
// the old one is still draining; here an address rests until the whole block was used. The role of KWOK uses
// it, with the block that it is given as a flag.
type PodAddresses struct {
	mutex sync.Mutex
	base  [4]byte
	last  int // offset into the block of the address that was given last
}

// NewPodAddresses takes the block as a prefix, such as 127.16.0.0/16.
func NewPodAddresses(block string) (*PodAddresses, error) {
	prefix, err := netip.ParsePrefix(block)
	if err != nil {
		return nil, fmt.Errorf("read the block of pod addresses: %w", err)
	}
	if !prefix.Addr().Is4() || prefix.Bits() != 16 {
		return nil, errors.New("read the block of pod addresses: an IPv4 prefix of 16 bits is needed, not " + block)
	}
	return &PodAddresses{base: prefix.Masked().Addr().As4()}, nil
}

// lastOffset is the offset of the last address for pods; the first has 1.
const lastOffset = 1<<16 - kept - 1

// Next is the next address.
func (p *PodAddresses) Next() string {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.last = p.last%lastOffset + 1
	address := p.base
	address[2], address[3] = byte(p.last>>8), byte(p.last)
	return netip.AddrFrom4(address).String()
}

// Skip moves the sequence behind an address that is in use: after a restart the pods of the old process still
// have theirs. Addresses of other blocks, and what is none, are ignored.
func (p *PodAddresses) Skip(used string) {
	address, err := netip.ParseAddr(used)
	if err != nil || !address.Is4() {
		return
	}
	bytes := address.As4()
	if bytes[0] != p.base[0] || bytes[1] != p.base[1] {
		return
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if offset := int(bytes[2])<<8 + int(bytes[3]); offset > p.last && offset <= lastOffset {
		p.last = offset
	}
}
