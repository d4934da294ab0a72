//go:build !race

package closedloop

// usualSeeds is how many scenarios are played.
const usualSeeds = 2000
