package load_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
)

// serviceClasses are a class for each of two models.
const serviceClasses = `name: %s
priority: %d
data:
- model: %s
  slo-ttft: 60000
  slo-tpot: 1000
`

// Two models want one replica more each, and one node is left. The more important model
// gets it, and the other one is told that nothing fits.
func theMoreImportantModelGetsTheLastNode(t *testing.T, w *world) {
	s := w.site(t, "bulk", "chat")
	w.configMap(t, "service-classes-config", map[string]string{
		"freemium.yaml": fmt.Sprintf(serviceClasses, "Freemium", 10, s.model("bulk")),
		"premium.yaml":  fmt.Sprintf(serviceClasses, "Premium", 1, s.model("chat")),
	})
	last := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "b200-2"}}
	w.patch(t, last, `{"spec":{"unschedulable":true}}`)
	// A replica takes a whole node. Without priorities bulk would come first, by its name.
	bulk := s.target(t, plan{name: "bulk", model: "bulk", instance: brisk, kind: "b200", devices: 4, replicas: 1})
	chat := s.target(t, plan{name: "chat", model: "chat", instance: brisk, kind: "b200", devices: 4, replicas: 1})
	bulk.serves(t, 1)
	chat.serves(t, 1)
	// Bulk has more than the triggers allow. Chat has more than a replica completes: something
	// always waits, so that it wants the second one however late the machine sends.
	s.clients(t, "bulk").ask(1.2 * carries)
	s.clients(t, "chat").ask(1.6 * carries)
	bulk.shows(t, patience, v1alpha1.ConditionScalingLimited, "NoSlots")
	chat.shows(t, patience, v1alpha1.ConditionScalingLimited, "NoSlots")
	raisedBulk, raisedChat := bulk.watchWrites(t), chat.watchWrites(t)

	w.patch(t, last, `{"spec":{"unschedulable":false}}`)
	chat.comesToAsk(t, patience, "two", exactly(2))
	chat.serves(t, 2)
	limited := bulk.shows(t, patience, v1alpha1.ConditionScalingLimited, "NoSlots")
	assert.Contains(t, limited.Message, "fewer than 4 free")
	w.roundsLater(t, brisk, 3)
	assert.Empty(t, raisedBulk.seen(), "%s\n%s", raisedBulk, bulk.notes(t))
	assert.Len(t, raisedChat.seen(), 1, "%s\n%s", raisedChat, chat.notes(t))
}
