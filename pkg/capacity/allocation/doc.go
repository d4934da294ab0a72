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
//     Within a priority fairness is part of that number, because least unserved demand
//     alone would let a model starve another one that needs more devices for the same
//     worth. The demand of each model above what its minimum serves is cut into ten
//     equal bands. Unserved demand of the last band counts what it is worth, that of
//     each band before it twice as much as the next. So the model that is served the
//     smaller share comes first unless it takes more than twice the worth of devices
//     for one band, or 512 times from the first to the last: water-filling in whole
//     replicas. A model of weight w among those of weight W at most has prices that
//     fall W/w times as fast, so that shares are filled in proportion to weights.
//  3. Cost, start-ups included, for what is served then.
//
// The priorities are served one after the other, and then the cost is brought down with
// what is served held fixed. That is exact where nothing is short: then every model
// simply gets Cheapest. Elsewhere it is a search: small clusters come out as by brute
// force, large ones with many replicas per model can leave less important priorities
// worse served than need be (see test/performance/allocation). Prices of the limits (Lagrange multipliers) come
// from a relaxation with fractions of replicas; at these prices each model offers its
// best choices in whole replicas, and a local search picks one of each.
//
// The package is pure. Read Option first, then Cheapest, then Share.
package allocation
