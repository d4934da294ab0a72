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
// Models that share no limit that could bind are separate markets, and where nothing is
// short every model simply gets Cheapest. Otherwise the questions are answered one after
// the other: the unserved demand of each priority, then the cost. Each answer starts from a
// greedy one: the models of a priority take turns, a band of their demand at a time, within
// what more important ones left. Then it is repaired (exchange.go), step by step: a model
// takes more of a variant, or gives some back and fills up with others; who is in the way
// loses replicas, and takes what else there is room for; a more important one may push
// others aside in turn, so that it never ends with less. A step is kept when it is better,
// or not much worse; how much is allowed falls to nothing in the end (simulated annealing).
// At the end the best choice of all stays, which always keeps limits and bounds. The number
// of steps depends on the number of models and not on time, and the numbers that are
// drawn are the same each time: so is the answer, wherever numbers are rounded alike.
//
// There is no proof that the answer is the best. The tests compare it with all that there
// could be for small clusters, where it always is; test/performance/allocation compares it
// with an exact solver for large ones, and docs/benchmarks-parts.md has the numbers.
//
// The package is pure. Read Option first, then Cheapest, then Share; then buyer, market and
// improve, in this order.
package allocation
