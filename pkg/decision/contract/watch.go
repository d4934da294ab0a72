package contract

import (
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// Conflict is what is known of somebody else who changes a target's replicas.
type Conflict struct {
	// Changes are what others did within the conflict window, oldest first.
	Changes []Change
	// Until is how long the target is left to the other one, and Backoff how long that
	// was to be.
	Until   time.Time
	Backoff time.Duration
}

// Change is a number of replicas that somebody else set.
type Change struct {
	// Time is when it was seen, and Writer the field manager, empty where it is not known.
	Time     time.Time
	Writer   string
	Replicas int
}

// Stuck is a replica whose requests wait since so long without anything happening to them,
// whether some are in service there, and the used share of its cache since then.
type Stuck struct {
	Name    string
	Since   time.Time
	Running bool
	KVUse   float64
}

// StuckQueue is a gateway's queue from which nothing comes although replicas idle.
type StuckQueue struct {
	// Since is since when that is so, and zero while it is not; Queue is how many wait.
	Since time.Time
	Queue float64
}

// Odd is a replica that does something else with its requests than the others of its variant:
// its node throttles it, a neighbour takes its part, or it answers at once and says nothing.
// What it shows is its own. Nothing is learned from it of what a replica serves, or of how long
// the requests are. It counts for what it does, and goes first.
type Odd struct {
	Name string
	// Pace is how many times as long as the others it takes for the same; 0 where its answers
	// are none.
	Pace float64
	// Since is when it was first seen so. For a metrics window it may be chance.
	Since time.Time
	// Load is what arrived for the model before that, in requests per second; 0 where nobody knows.
	Load capacity.Rate
}

// Share is what it serves, as a share of what one of the others does.
func (o *Odd) Share() float64 {
	if o.Pace == 0 {
		return 0
	}
	return 1 / o.Pace
}

// Does says what it does.
func (o *Odd) Does() Finding {
	if o.Pace == 0 {
		return SaysEmptyAnswers.With(o.Name)
	}
	return SaysSlow.With(o.Name, o.Pace)
}

// Part says which of two counts of the same requests is only a part of them: that of the
// gateway, or that of the replicas.
type Part int

// The counts that may be a part.
const (
	// PartNone: both count the same, as far as is known.
	PartNone Part = iota
	// PartGateway: requests reach the replicas that the gateway does not count for the model: they
	// go around it, ask by other names, or are several for the servers.
	PartGateway
	// PartReplicas: the gateway counts requests that no replica shows: they go to pods that are not
	// read, or come to nothing.
	PartReplicas
)

// Balance holds what the gateway counts against what the replicas do. Where both count all, what
// arrives at the gateway is what the replicas complete, plus what they have more in flight, plus
// what waits more in the gateway.
type Balance struct {
	// Sampled is the time of the newest sample that is in it.
	Sampled time.Time
	// Beside is how many requests the replicas had more than the gateway counted, and Unseen how
	// many less, beyond leastMissing of what arrived; Since is when the one that is not zero began.
	Beside, Unseen float64
	Since          time.Time
	// Part is what follows from it. It stands until the counts agree for as long as it took them
	// to differ.
	Part Part
	// Gateway and Replicas are the rates that were held against each other last.
	Gateway, Replicas float64
	// GatewayLately and ReplicasLately are between what they were lately.
	GatewayLately, ReplicasLately lately
}

// extent is the least and the most of some rates.
type extent struct{ Least, Most float64 }

// over is that of these and of those.
func (e extent) over(o extent) extent { return extent{min(e.Least, o.Least), max(e.Most, o.Most)} }

// lately is between what a rate was since a time, and for as long before.
type lately struct {
	Since       time.Time
	Now, Before extent
}

// See adds a rate. It returns the extent of what was seen for at least so long; for no time, of this one.
func (l *lately) See(rate float64, at time.Time, long time.Duration) extent {
	one := extent{rate, rate}
	switch {
	case l.Since.IsZero(), long == 0:
		*l = lately{at, one, one}
	case at.Sub(l.Since) >= long:
		*l = lately{at, one, l.Now}
	default:
		l.Now = l.Now.over(one)
	}
	return l.Now.over(l.Before)
}
