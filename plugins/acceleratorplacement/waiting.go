package acceleratorplacement

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// turnedDown is a pod that the last attempt found no node for.
type turnedDown struct {
	pod *corev1.Pod
	// asks is what it asked for; nil where that was not found out.
	asks *preFilterState
	// reason is the nearest reason, one of a closed set.
	reason string
}

// waiting remembers what the pods that were turned down wanted, so that a hint need
// not find it out again for every event. A pod that is not in here is one of which a
// hint knows nothing.
type waiting struct {
	mu   sync.RWMutex
	pods map[types.UID]turnedDown
}

func newWaiting() *waiting { return &waiting{pods: map[types.UID]turnedDown{}} }

// add remembers a pod that was turned down.
func (w *waiting) add(t turnedDown) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pods[t.pod.UID] = t
}

// forget is for a pod that is tried again: what it wanted then may no longer hold.
func (w *waiting) forget(uid types.UID) {
	w.mu.RLock()
	_, known := w.pods[uid]
	w.mu.RUnlock()
	if !known {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.pods, uid)
}

// of is what is known of a waiting pod; nothing is known of others.
func (w *waiting) of(uid types.UID) turnedDown {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return w.pods[uid]
}

// hopeless reports whether no event helps the pod: what it asks for is no request.
// What can mend that wakes the pod by itself: a change of its annotation, of its
// variant, or of the names.
func (t *turnedDown) hopeless() bool { return t.reason == reasonInvalid }

// list are the waiting pods in no order.
func (w *waiting) list() []turnedDown {
	w.mu.RLock()
	defer w.mu.RUnlock()
	all := make([]turnedDown, 0, len(w.pods))
	for _, t := range w.pods {
		all = append(all, t)
	}
	return all
}
