package signal

import (
	"llmd.ai/workload-variant-autoscaler/pkg/decision/contract"
)

// UnseenTimes is how many times as much as its replicas show a model's gateway may count: it may be
// read a little before they are. It is also how many times as fast as its tokens tell a replica may
// serve: several tokens may come at once, and the time is that between two times.
const UnseenTimes = 4

// Cannot reports whether the replica did not complete as much as is said.
func (r *Round) Cannot(p *contract.Replica, inFlight float64) bool {
	most, known := r.AtMost(p, inFlight)
	return known && r.Usable(p.Served) && p.Served.Value > most
}

// AtMost is the most that the replica can have completed, in requests per second. By Little's law
// it completes what it has over the time that this takes, where a request more may be overlooked;
// beside that, what it had when the window began, which is no more than the model has.
func (r *Round) AtMost(p *contract.Replica, inFlight float64) (most float64, known bool) {
	has, stay := r.stay(p)
	if stay == 0 {
		return 0, false
	}
	return ((1+SettledWithin)*has+1)/stay + inFlight/r.Window(p).Seconds(), true
}

// TooLong reports whether the replica's requests are not as long as is said: prompts do not fit its
// cache, or answers its time in service.
func (r *Round) TooLong(p *contract.Replica) bool {
	if r.Usable(p.Input) && r.Usable(p.KVTokens) && p.KVTokens.Value > 0 && p.Input.Value > p.KVTokens.Value {
		return true
	}
	return r.Usable(p.Output) && r.Usable(p.InService) && r.Usable(p.ITL) && p.ITL.Value > 0 && p.InService.Value > 0 &&
		p.Output.Value > UnseenTimes*(p.InService.Value/p.ITL.Value+1)
}

// stay is for how many seconds a request is at the replica at least, and how many requests are, both
// without those that wait where its time in service is shown. Else its tokens tell the time. It is 0
// where nothing tells it.
func (r *Round) stay(p *contract.Replica) (requests, seconds float64) {
	switch {
	case !r.Usable(p.Running):
	case r.Usable(p.InService) && p.InService.Value > 0:
		return p.Running.Value, p.InService.Value
	case r.Usable(p.Waiting) && r.Usable(p.TTFT) && r.Usable(p.ITL) && r.Usable(p.Output):
		return p.Running.Value + p.Waiting.Value, (p.TTFT.Value + max(0, p.Output.Value-1)*p.ITL.Value) / UnseenTimes
	}
	return 0, 0
}
