package main

// rule is a rule of the decision, and how to switch it off.
type rule struct {
	name string
	// does says what it does, in a few words.
	does string
	cut  cut
}

// cut is the change that switches a rule off.
type cut struct {
	// file is the path of the source file, below pkg.
	file string
	// function gets the statement first, or constant gets it as its value; the other one is empty.
	function, constant string
	first              string
}

// rules are those that could go. The basic ones are not among them: unknown is not zero, bounds,
// policies, the window of scale-down, room, priorities.
var rules = []rule{
	{"switch-mix", "a model switches to a cheaper mix of variants", cut{"decision/allocate/replace.go", "ReplaceMix", "", "return nil, false"}},
	{"switch-seldom", "after a switch no other one is made for a while", cut{"decision/allocate/replace.go", "tooSoon", "", "return false"}},
	{"too-few", "what a scale-down left in vain is not left again", cut{"decision/allocate/replace.go", "TooFewLeft", "", "return false"}},
	{"clients-wait", "more requests with no more in flight are no more load", cut{"decision/need/lowered.go", "workSince", "", "return m.Work()"}},
	{"chance-is-same", "more by chance is the same load, where no rate is known", cut{"decision/need/lowered.go", "About", "", "return load * ModelHeadroom"}},
	{"no-far-stretch", "replicas of unknown rate at most halve at once", cut{"decision/allocate/shrink.go", "asFar", "", "return 0"}},
	{"misfits-go", "replicas that miss the SLO go while others lack room", cut{"decision/allocate/shrink.go", "RelieveMisfits", "", "return"}},
	{"worth-its-price", "a dear replica is bought for what is likelier to come", cut{"decision/allocate/price.go", "LeaveDear", "", "return"}},
	{"scarce-room", "others leave room that a model lacks", cut{"decision/allocate/scarce.go", "FindScarce", "", "return"}},
	{"room-is-kept", "room that is made is kept for whom it was made", cut{"decision/limit/room.go", "nominate", "", "return"}},
	{"refused-room", "room that a scheduler refuses is given to others", cut{"decision/limit/room.go", "release", "", "return time.Time{}"}},
	{"slow-replica", "a replica much slower than the others is told apart", cut{"decision/fleet/odd.go", "paces", "",
		"if v != nil { none := make([]float64, len(v.In.Replicas)); for i := range none { none[i] = math.NaN() }; return none, math.NaN() }"}},
	{"empty-answers", "a replica that answers nothing is told apart", cut{"decision/fleet/odd.go", "empties", "", "return nil"}},
	{"asked-again", "what such a replica is asked again is no load", cut{"decision/fleet/odd.go", "AskedAgain", "", "return"}},
	{"idle-beside", "one that does nothing while others work goes first", cut{"decision/fleet/odd.go", "idleBeside", "", "return nil"}},
	{"dead-replica", "a replica in which nothing happens is dead", cut{"decision/fleet/dead.go", "StuckOf", "", "return nil"}},
	{"dead-queue", "a gateway's queue that nobody serves is no demand", cut{"decision/demand/queue.go", "deadQueue", "", "return false"}},
	{"impossible-counts", "counts and lengths that cannot be are left out", cut{"decision/demand/credible.go", "Disbelieve", "", "return"}},
	{"impossible-gateway", "a gateway's count that cannot be is left out", cut{"decision/demand/credible.go", "DisbelieveGateway", "", "return"}},
	{"part-of-the-whole", "a count that covers a part is told apart", cut{"decision/demand/part.go", "balance", "", "return contract.Balance{}"}},
	{"full-replica", "what a full replica does is remembered", cut{"decision/rate/full.go", "IsFull", "", "return false"}},
	{"attained", "missed promises lower what a replica is counted for", cut{"decision/rate/attained.go", "Attained", "", "return contract.Attained{}"}},
	{"doubt", "a rate that an estimate alone halves is confirmed", cut{"decision/rate/profile.go", "Doubt", "", "return false"}},
	{"shown", "what was served within the SLO counts at least", cut{"decision/rate/profile.go", "Show", "", "return"}},
	{"another-server", "what was learned of another server is forgotten", cut{"decision/rate/profile.go", "JudgeChange", "", "return false"}},
	{"doubted-server", "another pace than was learned is another server", cut{"decision/rate/profile.go", "Doubted", "", "return false"}},
	{"pace", "a given profile is paced by what is seen", cut{"decision/rate/profile.go", "Repace", "", "l.Given, l.Pace = given, 1; return"}},
	{"profile-votes", "a given profile is one observation more", cut{"decision/rate/rate.go", "seenAt", "", "return v.Next.Curve.Rate(n, shape, bends)"}},
	{"idle-corrects", "what hardly any requests show corrects what was seen of others", cut{"capacity/serving/curve.go", "ObserveIdle", "", "return c"}},
	{"keeps-once-kept", "a variant that keeps the SLO stays so at half the rate", cut{"decision/rate/rate.go", "", "keptPromised", "LeastPromised"}},
	{"hardly-asked", "replicas that show no rate are counted by how full they are", cut{"decision/rate/rate.go", "eachHardlyAsked", "", "return 1"}},
	{"peak-budget", "the rare peak may spend the misses of the whole time", cut{"decision/need/budget.go", "SizedFor", "", "return peak"}},
	{"headroom-goes", "headroom and forecast are not held by the window", cut{"decision/settle/behavior.go", "NeededOf", "", "return v.Wanted"}},
	{"short-window", "no window where the load will not jump back", cut{"decision/settle/behavior.go", "heldFor", "", "return v.Policy.Down.Window"}},
	{"drains", "nothing is added while a queue becomes shorter", cut{"decision/need/backlog.go", "Drains", "", "return false"}},
	{"unsettled", "nobody goes while a queue was there a moment ago", cut{"decision/need/backlog.go", "Unsettled", "", "return contract.Finding{}"}},
	{"shortfall", "a shortage without a trigger asks for more", cut{"decision/need/requirement.go", "judgeShortfall", "", "return"}},
	{"like-earlier", "the forecast knows that days are alike", cut{"forecast/history.go", "courses", "", "history = nil"}},
}
