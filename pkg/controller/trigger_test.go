package controller

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"llmd.ai/workload-variant-autoscaler/pkg/round"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestTriggerMakesOneOfMany(t *testing.T) {
	trigger := newTrigger()
	for _, u := range []round.Urgency{round.Soon, round.Urgent, round.Soon} {
		trigger.poke(u)
	}
	<-trigger.wake
	assert.Equal(t, round.Urgent, trigger.take())
	assert.Equal(t, round.Calm, trigger.take())
	assert.Empty(t, trigger.wake)
}
