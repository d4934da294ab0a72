package main

import "slices"

// gapValues is what a free part of a device is worth, by its thousandths, where a whole
// free device is worth 1.
//
// Cutting the expected shares out of as few devices as possible is the cutting-stock
// problem of Gilmore and Gomory (1961). In its linear relaxation every share has a price
// in devices: what one more of it adds to the devices needed. A gap is worth the most
// that shares which fit into it together can cost. A share put where the gap loses more
// than the share's price breaks a pattern that the best cutting needs: of 0.65 and 0.32
// on one device rather than 0.65 and 0.23, for example.
func gapValues(classes []Class) []float64 {
	demand := map[int]float64{}
	for i := range classes {
		if c := &classes[i]; c.Devices > 0 {
			demand[c.Share] += c.Popularity * float64(c.Devices)
		}
	}
	p := &cutting{}
	for share := range demand {
		p.shares = append(p.shares, share)
	}
	slices.Sort(p.shares)
	p.start(demand)
	values, pattern := p.cut()
	for range maxPatterns {
		if values[whole] <= 1+1e-9 || !p.enter(pattern) {
			break
		}
		values, pattern = p.cut()
	}
	for gap := range values {
		values[gap] /= values[whole]
	}
	return values
}

// maxPatterns bounds the rounds. Two hundred shares take a few hundred; ending early
// only makes prices less exact.
const maxPatterns = 5000

// cutting is the linear program in the middle of a round of the revised simplex method:
// the patterns in use, by the inverse of their matrix and how often each is cut.
type cutting struct {
	shares  []int
	inverse [][]float64
	cuts    []float64
}

// start uses a pattern for every share that holds nothing else.
func (p *cutting) start(demand map[int]float64) {
	for i, share := range p.shares {
		row := make([]float64, len(p.shares))
		row[i] = 1 / float64(whole/share)
		p.inverse = append(p.inverse, row)
		p.cuts = append(p.cuts, demand[share]*row[i])
	}
}

// prices are the dual values: every pattern in use is worth one device.
func (p *cutting) prices() []float64 {
	prices := make([]float64, len(p.shares))
	for _, row := range p.inverse {
		for i, v := range row {
			prices[i] += v
		}
	}
	return prices
}

// cut is what gaps of every size are worth at the prices of now, and the pattern that
// is worth most on a whole device: a knapsack of thousandths.
func (p *cutting) cut() (values []float64, pattern []float64) {
	prices := p.prices()
	values = make([]float64, whole+1)
	chosen := make([]int, whole+1)
	for gap := 1; gap <= whole; gap++ {
		values[gap], chosen[gap] = values[gap-1], -1
		for i, share := range p.shares {
			if share > gap {
				break
			}
			if v := values[gap-share] + prices[i]; v > values[gap]+1e-12 {
				values[gap], chosen[gap] = v, i
			}
		}
	}
	pattern = make([]float64, len(p.shares))
	for gap := whole; gap > 0; {
		if chosen[gap] < 0 {
			gap--
			continue
		}
		pattern[chosen[gap]]++
		gap -= p.shares[chosen[gap]]
	}
	return values, pattern
}

// enter takes the pattern into use, for the one that runs out first; false when none
// would.
func (p *cutting) enter(pattern []float64) bool {
	column := make([]float64, len(p.shares))
	out := -1
	for i, row := range p.inverse {
		for j, n := range pattern {
			column[i] += row[j] * n
		}
		if column[i] > 1e-9 && (out < 0 || p.cuts[i]/column[i] < p.cuts[out]/column[out]) {
			out = i
		}
	}
	if out < 0 {
		return false
	}
	times := p.cuts[out] / column[out]
	for j := range p.inverse[out] {
		p.inverse[out][j] /= column[out]
	}
	for i := range p.inverse {
		if i == out {
			continue
		}
		p.cuts[i] -= times * column[i]
		for j := range p.inverse[i] {
			p.inverse[i][j] -= column[i] * p.inverse[out][j]
		}
	}
	p.cuts[out] = times
	return true
}
