package simulation

// queue is a double-ended queue in a ring: requests come at the back, and those
// that were preempted at the front.
type queue struct {
	ring  []*sequence
	head  int
	count int
}

func (q *queue) len() int { return q.count }

func (q *queue) at(i int) *sequence { return q.ring[(q.head+i)&(len(q.ring)-1)] }

func (q *queue) front() *sequence { return q.at(0) }

func (q *queue) pushBack(s *sequence) {
	q.grow()
	q.ring[(q.head+q.count)&(len(q.ring)-1)] = s
	q.count++
}

func (q *queue) pushFront(s *sequence) {
	q.grow()
	q.head = (q.head - 1) & (len(q.ring) - 1)
	q.ring[q.head] = s
	q.count++
}

func (q *queue) popFront() *sequence {
	s := q.ring[q.head]
	q.ring[q.head] = nil
	q.head = (q.head + 1) & (len(q.ring) - 1)
	q.count--
	return s
}

// remove takes out the first request with the given ID, or returns nil.
func (q *queue) remove(id uint64) *sequence {
	for i := range q.count {
		s := q.at(i)
		if s.request.ID != id {
			continue
		}
		mask := len(q.ring) - 1
		for j := i; j < q.count-1; j++ {
			q.ring[(q.head+j)&mask] = q.ring[(q.head+j+1)&mask]
		}
		q.count--
		q.ring[(q.head+q.count)&mask] = nil
		return s
	}
	return nil
}

// grow keeps the length of the ring a power of two.
func (q *queue) grow() {
	if q.count < len(q.ring) {
		return
	}
	ring := make([]*sequence, max(16, 2*len(q.ring)))
	for i := range q.count {
		ring[i] = q.at(i)
	}
	q.ring, q.head = ring, 0
}
