package replay

import "llmd.ai/workload-variant-autoscaler/pkg/simulation"

// TooLong says why requests failed that no replica of the variant which got them can hold:
// their prompt and their answer need more tokens than its KV cache has.
type TooLong struct {
	// Requests is how many there were. The others describe the longest of them.
	Requests int `json:"requests"`
	// Input and Output are its tokens, and Variant the one that got it, whose replicas hold
	// KVTokens.
	Input    int    `json:"inputTokens"`
	Output   int    `json:"outputTokens"`
	Variant  string `json:"variant"`
	KVTokens int    `json:"kvTokens"`
}

// needs is how many tokens of KV cache the longest one needs. The last token is never read
// back.
func (t *TooLong) needs() int { return t.Input + t.Output - 1 }

// note counts a request that failed, if it was too long for the replica that got it.
func (t *TooLong) note(s *Scenario, o simulation.Outcome) *TooLong {
	if o.Variant < 0 {
		return t
	}
	v := &s.Models[o.Model].Variants[o.Variant]
	longest := TooLong{Input: o.Input, Output: o.Output, Variant: v.Name, KVTokens: int(v.Profile.KVTokens)}
	if longest.KVTokens <= 0 || longest.needs() <= longest.KVTokens {
		return t
	}
	if t == nil {
		longest.Requests = 1
		return &longest
	}
	t.Requests++
	if longest.needs() > t.needs() {
		longest.Requests = t.Requests
		*t = longest
	}
	return t
}
