package modelserver

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestNamesAreReadAsOthersWriteThem(t *testing.T) {
	assert.Equal(t, []string{"vllm:num_requests_waiting", "vllm_num_requests_waiting", "ray_vllm_num_requests_waiting",
		"sglang:num_queue_reqs", "sglang_num_queue_reqs", "ray_sglang_num_queue_reqs"}, Of(Waiting).Names)
	assert.Len(t, Of(GatewayQueue).Names, 2, "a name without a colon has one spelling")
}

func TestWhichSeriesCount(t *testing.T) {
	cases := []struct {
		quantity           Quantity
		name, label, value string
	}{
		{Running, "sglang:num_running_reqs", "priority", ""},
		{Waiting, "ray_sglang_num_queue_reqs", "priority", ""},
		{Running, "vllm:num_requests_running", "", ""},
		{KVUse, "sglang:token_usage", "", ""},
		{GatewayDispatched, "llm_d_epp_scheduler_attempts_total", "status", "success"},
	}
	for _, c := range cases {
		label, value := Of(c.quantity).Selection(c.name)
		assert.Equal(t, [2]string{c.label, c.value}, [2]string{label, value}, c.name)
	}
}
