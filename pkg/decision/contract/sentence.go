package contract

// The sentences. The comment of each says what stands in it, in order.
const (
	// SaysNothing is that of the zero Finding.
	SaysNothing Sentence = iota

	// SaysWords: words of somebody else (string), as they stand.
	SaysWords
	// SaysClauses: several findings, one after the other.
	SaysClauses
	// SaysListed: several findings in a list.
	SaysListed
	// SaysBecause: a finding, and why.
	SaysBecause
	// SaysMessage: several findings, of which the first is told, and each further one that says
	// more and leaves the whole short.
	SaysMessage

	// Who.

	// SaysName: the name of a variant or a model.
	SaysName
	// SaysVariantElsewhere and SaysModelElsewhere: one of another namespace, whose name nobody is told.
	SaysVariantElsewhere
	SaysModelElsewhere
	// SaysFieldManager: the name of a field manager.
	SaysFieldManager
	// SaysSomethingElse: one whose name is not known.
	SaysSomethingElse

	// What takes no part.

	// SaysTargetMissing: there is no target.
	SaysTargetMissing
	// SaysTargetForbidden: the target may not be read or scaled.
	SaysTargetForbidden
	// SaysTargetShared: another object counts its replicas.
	SaysTargetShared
	// SaysTargetRivaled: another autoscaler scales it.
	SaysTargetRivaled
	// SaysReplicasHeld: why nobody knows what fits.
	SaysReplicasHeld
	// SaysChangedBy: who changed the replicas, from how many and to how many.
	SaysChangedBy
	// SaysKeepsChanging: who keeps changing them, and until when nothing is written (time.Time).
	SaysKeepsChanging
	// SaysNoneAdded: no replica is added.
	SaysNoneAdded
	// SaysAddedAsIfTheyFit: replicas are added as if they fitted.
	SaysAddedAsIfTheyFit

	// Freshness.

	// SaysFresh: how many replicas have fresh metrics, of how many that serve.
	SaysFresh
	// SaysNoCacheUse: replicas show no use of a cache.
	SaysNoCacheUse
	// SaysUnread: several findings of SaysLacking.
	SaysUnread
	// SaysLacking: what is lacking, and the names of the replicas of which it is.
	SaysLacking
	// SaysNotScraped: nothing was read yet.
	SaysNotScraped
	// SaysNoMetrics: nothing is known.
	SaysNoMetrics
	// SaysMetricsOld: all that is known is old.
	SaysMetricsOld
	// SaysMissing and SaysOld: which metric is.
	SaysMissing
	SaysOld
	// SaysCacheUse, SaysWaitingRequests and SaysRunningRequests: these metrics.
	SaysCacheUse
	SaysWaitingRequests
	SaysRunningRequests
	// SaysLetScrape: what to do where metrics are missing.
	SaysLetScrape
	// SaysScrapedLate: the time between scrapes, how late they are known, and the window of the means.
	SaysScrapedLate
	// SaysScrapedSeldom: the time between scrapes, the window of the means, and the usual one.
	SaysScrapedSeldom

	// Supply.

	// SaysServesEach: the rate of a replica, and how many count as supply.
	SaysServesEach
	// SaysServesUnknown: how many replicas count as supply.
	SaysServesUnknown
	// SaysOnlyPublished: how many of them are only published.
	SaysOnlyPublished
	// SaysCacheNotReported: how many tokens (capacity.Tokens) a cache has, and who says so.
	SaysCacheNotReported
	// SaysRequestsStand: how many requests (float64) nothing happens to, in how many replicas of how
	// many that serve, and the names of these.
	SaysRequestsStand
	// SaysQueueStands: how many requests wait in the gateway that it sends to no replica.
	SaysQueueStands
	// SaysDiffer: several findings of SaysEmptyAnswers and SaysSlow, as one of SaysListed.
	SaysDiffer
	// SaysEmptyAnswers: the name of a replica.
	SaysEmptyAnswers
	// SaysSlow: the name of a replica, and how many times as long as the others it takes (float64).
	SaysSlow
	// SaysNotReady: findings of SaysLost.
	SaysNotReady
	// SaysLost: how many replicas are unschedulable, crash-looping, overdue, on a node that is not
	// ready and without pod, and whether the rollout is paused (bool).
	SaysLost
	// SaysSaturationAlone: why the promise sizes nothing.
	SaysSaturationAlone
	// SaysHybridOff: hybrid mode is off.
	SaysHybridOff
	// SaysCapacityOnly: the name of a service class.
	SaysCapacityOnly
	// SaysLengthsUnknown: no request ended yet.
	SaysLengthsUnknown
	// SaysNoneMeetsSLO: no variant keeps the promise.
	SaysNoneMeetsSLO
	// SaysNoLatencyKnown: no variant's latency is known well enough.
	SaysNoLatencyKnown
	// SaysLatencyUnknown: the variant's is not.
	SaysLatencyUnknown
	// SaysMissesIdle: it misses the promise even when idle.
	SaysMissesIdle
	// SaysCountedAt: the share of what the latency model says, and a finding of SaysMet.
	SaysCountedAt
	// SaysMet: the share of the requests that surely kept the promise, and that which may have.
	SaysMet
	// SaysWithinBucket: a finding of SaysMet, the name of a setting, its value in milliseconds, and
	// the Bucket in which that is.
	SaysWithinBucket
	// SaysPaced: how many times as long as its given profile says a token takes (float64).
	SaysPaced
	// SaysAssumed: how much a variant is assumed to serve: one of the four below.
	SaysAssumed
	// SaysTimesAsMuch: a factor (float64), whose rate it is of, the variant's shape and that one's.
	SaysTimesAsMuch
	// SaysAsMuchAlike: whose rate it is, on the same hardware.
	SaysAsMuchAlike
	// SaysAsMuchPerCost: whose rate per cost it is.
	SaysAsMuchPerCost
	// SaysAsMuchPerMemory: whose rate per memory of devices it is.
	SaysAsMuchPerMemory
	// SaysAsMuch: whose rate it is.
	SaysAsMuch

	// Demand.

	// SaysArrivalUnknown: nobody knows what arrives.
	SaysArrivalUnknown
	// SaysDemand: the rate now, that of the forecast, and how many requests wait.
	SaysDemand
	// SaysAsEarlier: the load moves as on an earlier day.
	SaysAsEarlier
	// SaysGatewayCountsPart and SaysReplicasCountPart: the rate that the gateway counts, and the one
	// that the replicas show.
	SaysGatewayCountsPart
	SaysReplicasCountPart

	// Requirement.

	// SaysNoReplica: the model has none.
	SaysNoReplica
	// SaysMissingNoChange and SaysStaleNoChange: the metrics allow no change.
	SaysMissingNoChange
	SaysStaleNoChange
	// SaysBeyondSLO: the rate that is required, and the one up to which the promise is kept.
	SaysBeyondSLO
	// SaysTooFewFresh: too few replicas have fresh metrics.
	SaysTooFewFresh
	// SaysShort: what says that capacity is short, and by what rate.
	SaysShort
	// SaysMaxTakes: how many replicas maxReplicas takes.
	SaysMaxTakes
	// SaysSaturated: how many replicas are saturated.
	SaysSaturated
	// SaysNoAnswers: how many replicas give no answers.
	SaysNoAnswers
	// SaysWaiting: how many requests wait (float64).
	SaysWaiting
	// SaysAllSaturated: all replicas that serve are.
	SaysAllSaturated
	// SaysTooFull: how full replicas are, and above what that is (Share); beside how many that are
	// saturated, and how many that are dead.
	SaysTooFull
	// SaysTooManyWait: how many requests wait per replica, and more than how many that is (float64);
	// beside how many that are saturated, and how many that are dead.
	SaysTooManyWait
	// SaysLoad: how full replicas are (Share), and how many requests wait per replica (float64);
	// beside how many that are saturated, and how many that are dead.
	SaysLoad
	// SaysWaitingForNone: how many requests wait while no replica serves (float64).
	SaysWaitingForNone
	// SaysNoneServesWhatWaits: all replicas are dead.
	SaysNoneServesWhatWaits
	// SaysNoLoad: nothing is known of the load.
	SaysNoLoad
	// SaysStartingSuffice: the replicas that start do.
	SaysStartingSuffice
	// SaysQueueDrains: it does in time.
	SaysQueueDrains
	// SaysBelowThresholds: the rate that is required, and that of the replicas.
	SaysBelowThresholds
	// SaysServesUnseen: nobody knows what a replica serves.
	SaysServesUnseen
	// SaysSLONeedsFewer: the promise needs fewer replicas.
	SaysSLONeedsFewer
	// SaysArrivalUnsure: what arrives is not known well enough.
	SaysArrivalUnsure
	// SaysGatewayOld: the gateway's count is.
	SaysGatewayOld
	// SaysUnrated: the window over which there is no rate, and the names of the replicas.
	SaysUnrated
	// SaysNotWhileWaiting: no scale-down while how many requests wait (float64).
	SaysNotWhileWaiting
	// SaysNotYet: why there is no scale-down yet.
	SaysNotYet
	// SaysJustBegan: replicas just began to serve.
	SaysJustBegan
	// SaysWaitedLately: requests did.
	SaysWaitedLately

	// Allocation.

	// SaysNoChangeWanted: no change is.
	SaysNoChangeWanted
	// SaysAsksOn: how many replicas a variant in mode Off asked for last.
	SaysAsksOn
	// SaysMinimum: minReplicas.
	SaysMinimum
	// SaysMinimumBypasses: minReplicas, which bypasses scaleUp.
	SaysMinimumBypasses
	// SaysNoOtherFits: no other variant does.
	SaysNoOtherFits
	// SaysNothingFits: no replica fits or is allowed.
	SaysNothingFits
	// SaysKeeps: the name of the variant that keeps the model's replica.
	SaysKeeps
	// SaysWakes: how many requests wait while no replica serves.
	SaysWakes
	// SaysKeptOne: one replica is kept.
	SaysKeptOne
	// SaysRoomKept: for how many replicas room is kept, and of whom.
	SaysRoomKept
	// SaysMustGrow: how many more replicas are wanted, and how many fit.
	SaysMustGrow
	// SaysAdded: why, how many, for what rate, and the rate of a replica.
	SaysAdded
	// SaysAddedUnrated: why, and how many while nobody knows what one serves.
	SaysAddedUnrated
	// SaysUsesRoom: why a replica takes the room that others gave.
	SaysUsesRoom
	// SaysTooDear: how many times as much it costs (float64), up to what rate it is worth it, and what
	// rate is required.
	SaysTooDear
	// SaysTooLarge: the same where a price is not known, and how many times as much memory of devices
	// it takes.
	SaysTooLarge
	// SaysOthersCheaper: other variants are.
	SaysOthersCheaper
	// SaysSwitch: how many replicas are added, why, what the mix costs and what the last one cost.
	SaysSwitch
	// SaysSwitchUnpriced: how many replicas are added, why, the mix and the last one.
	SaysSwitchUnpriced
	// SaysCheaperMix: it costs less.
	SaysCheaperMix
	// SaysSmallerMix: its devices have less memory.
	SaysSmallerMix
	// SaysNeedsRoom: who needs the room of which variant (string).
	SaysNeedsRoom
	// SaysRemovedFirst: who needs the room of this one.
	SaysRemovedFirst
	// SaysSuffice: what was found, how many replicas suffice, and for what rate.
	SaysSuffice
	// SaysTooFewBefore: the rate for which fewer did not suffice.
	SaysTooFewBefore
	// SaysCapacityRequired: the rate that must stay.
	SaysCapacityRequired
	// SaysNoneToRemove: there is no replica.
	SaysNoneToRemove
	// SaysAtMinimum: minReplicas, which keeps the rest.
	SaysAtMinimum
	// SaysKeepsOneThatServes: the model keeps a replica.
	SaysKeepsOneThatServes
	// SaysMisfitsReduced: to how many.
	SaysMisfitsReduced
	// SaysGivesUp: for whom, and with what priority.
	SaysGivesUp
	// SaysGivesUpToEqual: for whom.
	SaysGivesUpToEqual
	// SaysWaitsForRoom: who gives it.
	SaysWaitsForRoom

	// Limits.

	// SaysWithdrawn: what is lost is.
	SaysWithdrawn
	// SaysFoundNoNode and SaysFailedStarts: why a variant is left alone.
	SaysFoundNoNode
	SaysFailedStarts
	// SaysNextTry: in what time it is tried again.
	SaysNextTry
	// SaysUnserved: what rate is.
	SaysUnserved
	// SaysUnservedOf: what rate is, of what rate.
	SaysUnservedOf
	// SaysUpDisabled: scaleUp is.
	SaysUpDisabled
	// SaysUpPolicies: how many its policies allow.
	SaysUpPolicies
	// SaysGrowthLimit: how many it allows, and how many serve.
	SaysGrowthLimit
	// SaysUpWindow: the window of scaleUp.
	SaysUpWindow
	// SaysUpTolerance: the tolerance of scaleUp.
	SaysUpTolerance
	// SaysFit: how many more replicas do.
	SaysFit
	// SaysFitAtMost: how many at most, and what is not modelled (string).
	SaysFitAtMost
	// SaysNoMoreFit: none does.
	SaysNoMoreFit

	// Zero.

	// SaysSleeps: the model does.
	SaysSleeps
	// SaysSleepsUnseen: why a request may not wake it.
	SaysSleepsUnseen
	// SaysHasReplica: the model has one.
	SaysHasReplica
	// SaysStaysAwake: why nothing would wake it, so that it keeps its replica.
	SaysStaysAwake
	// SaysNothingWakes: why nothing would wake it.
	SaysNothingWakes
	// SaysGatewayStale, SaysNoFlowControl, SaysQueueGone and SaysNoQueue: what the gateway does not tell.
	SaysGatewayStale
	SaysNoFlowControl
	SaysQueueGone
	SaysNoQueue
	// SaysIdle: for how long there were no requests.
	SaysIdle

	// Bounds.

	// SaysWithinBounds: the replicas are.
	SaysWithinBounds
	// SaysMaximum: maxReplicas.
	SaysMaximum
	// SaysMaximumOf: whose it is (string), and maxReplicas.
	SaysMaximumOf
	// SaysHoldsNoMore: how many a scale target holds.
	SaysHoldsNoMore

	// Behavior.

	// SaysNoFurtherLimit: behavior sets none.
	SaysNoFurtherLimit
	// SaysOnlyFullRounds: only these lower.
	SaysOnlyFullRounds
	// SaysRollingUpdate: one is under way.
	SaysRollingUpdate
	// SaysShownHeld: what is shown is held.
	SaysShownHeld
	// SaysNeverReady: what never became ready bypasses scaleDown.
	SaysNeverReady
	// SaysMaximumBypasses: maxReplicas does.
	SaysMaximumBypasses
	// SaysFullWindow: the window that is waited for.
	SaysFullWindow
	// SaysWindowKeeps and SaysStartupKeeps: its length, and how many replicas it keeps.
	SaysWindowKeeps
	SaysStartupKeeps
	// SaysDownDisabled: scaleDown is.
	SaysDownDisabled
	// SaysDownPolicies: how many its policies allow.
	SaysDownPolicies
	// SaysDownTolerance: its tolerance.
	SaysDownTolerance

	// What a plan says as a whole.

	// SaysMetricsMissing and SaysMetricsAged: why there is no decision.
	SaysMetricsMissing
	SaysMetricsAged
	// SaysBinds: which stage binds, and what it found.
	SaysBinds
	// SaysDemandBinds: the rate that is required, and that of a replica.
	SaysDemandBinds
	// SaysCapacityBinds: the rate that must stay, and that of a replica.
	SaysCapacityBinds
	// SaysAlternative: the mix, what it costs and what is paid now.
	SaysAlternative
	// SaysAlternativeUnpriced: the mix, and the one of now.
	SaysAlternativeUnpriced
	// SaysMix: several findings of SaysReplicasOf or SaysReplicasTaking.
	SaysMix
	// SaysReplicasOf: how many replicas of which variant (string).
	SaysReplicasOf
	// SaysReplicasTaking: the same, and how many devices of which kind (capacity.Device) they take.
	SaysReplicasTaking
	// SaysIsHeld: the name of a variant, and why.
	SaysIsHeld
	// SaysHeldByScaleDown: the name of a variant.
	SaysHeldByScaleDown
	// Why a mix that costs less is not the answer: more is needed, replicas may not go, switches are
	// off, replicas change, such a mix was undone, the saving must last, it saves too little.
	SaysNoSwitchWhileMore
	SaysNoSwitchWhileHeld
	SaysSwitchesOff
	SaysNoSwitchWhileChanging
	SaysSwitchUndone
	SaysSavingMustLast
	SaysSavesTooLittle

	// Sentences is how many there are.
	Sentences
)
