// Package decision is the whole brain of the autoscaler: Decide takes a Snapshot
// of all facts at one instant, the Policy that the users allow and the Memory of
// earlier rounds, and returns a Plan and the next Memory.
//
// It is a pure function. It has no clock (the snapshot carries the time), no input
// or output, no logger, no globals and depends on no map order: the same inputs
// give the same plan, byte for byte. It must never lower a replica count on
// missing, stale or half-covered data, and never read unknown as zero.
//
// Decide is a list of stages, and each stage is a package. A stage imports only those before it, so
// that it cannot read what is found later:
//
//	contract  Snapshot, Policy, Memory and Plan: what goes in and what comes out
//	signal    samples -> ages, settled or not, credible or not
//	fleet     pods and samples -> one state per replica, load, evidence, back-off
//	demand    counts of gateway and replicas -> what arrives now and will, tokens, backlog
//	rate      curve, latency model and promise -> what one replica serves
//	need      demand, load and rate -> more, less or nothing, and how much
//	limit     nodes, quotas, bounds and scaleUp -> the most that each variant may have now
//	allocate  needs of all models -> replicas of their variants
//	preempt   models without room -> replicas of others that give way
//	settle    sleep, scaleDown, victims -> the replicas that are asked for
//
// Each has a Variant and a Model of its own where it finds something of one. They hold those of the
// stage before, and what it found.
//
// Steps carry numbers and no words: a contract.Finding is a sentence of a closed set and what stands in
// it. Package report/sentence renders it where somebody reads it.
//
// Read contract.Snapshot and contract.Plan first, then Decide.
//
// # What the caller owes
//
//   - One round after the other, in the order of time, each with the Memory that the one before returned.
//   - A Snapshot of one instant. Each sample has its own time, and one that is not known is absent: nobody
//     puts a zero in its place.
//   - All variants of a model in every round, also those that cannot be read.
//   - What a plan desires is written, or it is not and the next Snapshot shows it. What was written is told to
//     the Memory (Wrote): another number is somebody else's then.
//
// # One round
//
// Two replicas of one variant, each with 70 of the 100 requests that it holds; a request takes 10 s. At the
// gateway 13.98 req/s arrive and 10 requests wait.
//
//	signal    all samples are fresh
//	fleet     2 replicas serve; none is saturated: 70 % of the cache are used, and 80 % is the threshold
//	demand    13.98 req/s arrive, 10 requests wait
//	rate      a full replica serves 100/10 s = 10 req/s, and 7 at the load that the triggers allow (70 %)
//	need      13.98 req/s, and 10 requests in the drain time of 120 s: 14.06 req/s of 14 that are supplied; more
//	limit     no bound, no rate policy, and nobody knows the nodes: any number
//	allocate  0.06 req/s are missing, which is one replica: 3
//	preempt   nobody lacks room
//	settle    nothing goes, so that no window holds anything: 3 are desired
//
// TestPublishedExampleOfTheQueueDemand holds it.
//
// # What survives a round
//
// contract.Memory is a value: one struct per variant and one per model. Each of their fields says
// what a new leader, which starts with the zero Memory, does without it.
//
// # The numbers that decide
//
// What operators set stands in Policy, and how arrivals are forecast in package forecast. The
// rest is here; a test holds the list complete.
// The source is P where a published autoscaler or Kubernetes has that number, M where it
// was measured (make bench WHAT=autoscaling, the demo in virtual time), C where it is chosen and
// little depends on it.
//
//	Precision             share     C  that of numbers which are looked for, and up to which two sums of rates are the same: any small one
//	DefaultRisk           share     M  a missing replica costs nine times what an idle one does
//	saturationRisk        share     M  the same where saturation alone decides
//	Repeats               time      C  how long it counts how well the promise was kept, and the longest that a scale-down which was undone is not made again: loads repeat after a day
//	LeastBelieved         time      C  and how long it is not made again at first: what slows servers down is over by then; so for a switch
//	lasts                 -         C  times that pause for which a switch must have been the last one to have been worth it
//	attainedPrior         time      C  and how long it is taken to have been kept before
//	LeastCounted          share     M  least share of its latency model that a replica is counted to serve
//	leastPeakShare        share     C  share that keeps the promise at the rarest peak: a median at least
//	LowerHeadroom         -         P  distance between the thresholds of scaling up and down, 0.85/0.70
//	ModelHeadroom         -         C  the same where latency sizes, which reckons with scatter already
//	spareWorth            share     C  worth of spare capacity in a purchase: less buys many small dear replicas
//	scarcity              -         C  times its price that a replica counts for whose room others lack
//	ScarceModels          models    C  that are looked at which lack room on one accelerator: bounds the time of a round
//	EqualsPerRound        models    C  for which room is looked for that only equals can make: the same
//	LooksPerReplica       -         C  times that replicas which may give way are looked at, in the mean: the same
//	WorkExplained         choices   M  looked at to tell a model's next best mix, and which of its variants would grow: the same
//	workBought            choices   C  and for one purchase of a model: the same
//	OneMore               req/s     C  a need that any replica covers
//	LeastPromised         share     C  below it a promise counts as missed at any load: half of it sizes on noise
//	keptPromised          share     C  the same for one that keeps it: it takes more than noise to change that
//	freeShare             share     C  what a variant of cost 0 counts as, of the least cost: any small number
//	SettledWithin         share     C  how far a window may be from Little's law, or from full, and lengths from others, and show one state
//	SettledChance         -         P  and of the last arrivals from chance, in standard deviations
//	LeastMissing          share     C  of what arrives that one of two counts must miss to be a part: headroom covers less
//	DeadWindows           windows   C  for which nothing may happen to requests that wait before nobody is taken to serve them
//	clientPatience        time      P  the same where some are in service: OpenAI's clients wait for so long
//	cacheStands           share     C  that the used share of a cache changes at most while nothing happens: any small one
//	fewToAsk              replicas  C  from which on what one alone shows of how many it runs is not believed: of two nobody knows which is wrong
//	uncachedAfter         time      C  for which a server must show no use of a cache to be one that has none to show
//	coarse                time      C  how exactly a text tells what is estimated anew each time
//	middle                share     P  of a metrics window that has passed where its means are those of a straight line
//	LeastKVUse            share     C  least cache use that tells how many requests fit
//	LowerCoverage         share     P  replicas that must have fresh metrics before a count is lowered
//	aheadFactor           -         C  times as old as it is ahead that a sample from the future counts
//	leastUnsaturated      replicas  P  known to have some spare before a ready one goes
//	hollow                share     C  of the usual answer below which that of one replica alone is none: any small one
//	LeastJudged           requests  C  completed in a window that tell a replica from others: the mean of as many is a third off
//	UnseenTimes           -         C  times what its replicas can have done that a gateway may count, as it may be read before they are, and times as fast as its tokens tell that one may serve
//	mostStretch           -         C  times its present load that a replica may get by a scale-down where no profile says what it serves
//	FastInterval          time      P  time between fast rounds
//	landingSlack          time      M  from a write to the first request of a ready replica, beside its start-up
//	DefaultLead           time      C  start-up that is assumed before one was seen
//	seenWindows           windows   C  back that it is known what waited and served
//	SwitchesPerRound      models    C  most models that change to cheaper variants at once
//	switchLeast           share     C  least saving for which one does: less follows every change of a minute
//	FitsPerRound          fits      M  bounds the time of a round
//	FitSpacing            time      M  the same
//	WrongPace             -         M  factor beyond which a given profile is wrong: what a few requests took is up to a third off
//	SameServer            -         C  and beyond which a server is another one after a rolling update: single points are a tenth off
//	SamePoint             share     C  change of what was seen, or of the lengths, up to which a latency model and a rate stand
//	halved                share     C  of what it was below which a rate that a latency model alone lowers is confirmed over a window
//	LeastShown            share     C  of what replicas served while the promise was kept that one is counted for, as an estimate is less wrong, and the step in which a latency model alone lowers a rate
//	SizesPerRound         rates     M  the same
//	sameBurst             share     C  the same for how bursty arrivals are
//	leastDeadline         time      C  least start-up deadline
//	deadlineStartups      -         C  and in start-ups as they were seen
//	PlacementPatience     time      C  how long a replica may hold no node where no node comes
//	NodePatience          time      P  and where one comes, which takes cloud providers minutes; containers may fail for as long
//	PodPatience           time      C  how long a replica may have no pod
//	crashStartups         -         C  start-ups for which containers may fail: one restart may mend it
//	Again                 -         P  times as long that a pause, a conflict or a start is given the next time
//	LeastPause            time      C  a failed start is tried again after this
//	MostPause             time      C  and at the latest after this
//	recovery              time      P  the pause is short again after this, as with pods in CrashLoopBackOff
//	unreadRecovery        time      C  and after this where the nodes cannot be read
//	leastConflictBackoff  time      C  how long the other one is then left in peace
//	mostConflictBackoff   time      C  and at the longest
//	MostReplicas          replicas  P  what the scale subresource can hold
//	LeastPriority         -         C  priority of a model in no service class
package decision
