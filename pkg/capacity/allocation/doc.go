// Package allocation answers which replicas to buy: the cheapest numbers of
// replicas of several variants that serve a load, within what each variant may
// still grow.
//
// It is pure. Read Option first, then Cover.
package allocation
