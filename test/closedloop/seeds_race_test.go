//go:build race

package closedloop

// usualSeeds is how many scenarios are played with the race detector, which makes them
// ten times as slow. The decision shares nothing between two callers, so that a few that
// play beside each other are enough to see it.
const usualSeeds = 40
