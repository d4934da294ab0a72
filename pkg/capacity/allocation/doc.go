// Package allocation answers which replicas to buy.
//
// Cheapest finds for one model the least-cost numbers of replicas of its variants that
// serve a load, exactly, with what exists, bounds and the price of starting up; Next
// says what the next best mix would cost.
//
// Share does it for all models of a cluster under limits that they share. What is best
// is decided in this order:
//
//  1. The lower bounds of all models, whatever their priority. They are honoured
//     before anybody grows above them. Where they do not all fit, the more important
//     models come first and those of one priority take turns.
//  2. Unserved demand by priority, the lowest number first; a model never takes what a
//     more important one could use. Requests of different models cannot be added, so
//     demand counts what serving it costs on the model's variant with the lowest cost
//     per rate: two models on the same accelerator then compete in the same currency.
//     Within a priority fairness is part of that number. The demand of each model above
//     what its minimum serves is cut into ten equal bands. Unserved demand of the last
//     band counts what it is worth, that of each band before it twice as much as the
//     next. So the model that is served the smaller share comes first unless it takes
//     more than twice the worth of devices for one band, or 512 times from the first
//     to the last: water-filling in whole replicas. A model of weight w among those of
//     weight W at most has prices that fall W/w times as fast, so that shares are
//     filled in proportion to weights.
//  3. Cost, start-ups included, for what is served then.
//
// Why fairness is not a level of its own: below least unserved demand it would come
// too late, because of 12 devices three replicas of one model may use as many as four
// of another and starve it; and above it, as the greatest smallest share, one model
// that nothing can serve would take the protection away from all the others.
//
// Models that share no limit that could bind are separate problems, and where nothing
// is short every model simply gets Cheapest. Otherwise the questions are answered one
// after the other: the unserved demand of each priority, with that of the more important ones
// held, and then the cost. Each is answered by branch and price: a linear program
// (master) mixes whole choices (column) of each model under the limits; its prices ask
// each model for a better choice (finder), until none has one; what is left mixed is
// branched on (branch), and a walk from the best choice so far exchanges replicas
// across models where branching would not soon come to it (walk): it lists for each
// model the choices that are nearly the best at these prices, gives one model another
// one of its list, takes out those that are in the way, and lets each of them take the
// first of its list that fits; a step takes about a microsecond. The search ends with a
// proof, or with the best choice so far when its budget of work is used up. That choice
// always keeps limits and bounds. Branching finds what fits where little is to spare,
// which the walk misses: of 96 instances 19 are worse without it, by 0.05 % in all. The budget counts elements and not time, and the walk
// draws the same numbers each time, so the answer is the same on every machine. How
// near that comes is measured in test/performance/allocation.
//
// The package is pure. Read Option first, then Cheapest, then Share; then cluster,
// question, branch, walk, master and column, in this order.
package allocation
