// Package workload says which requests arrive when: recorded request traces and
// synthetic arrivals, both as a Stream in order of arrival.
//
// It reads what the caller opens for it, line by line, and holds no more of a
// trace than it has to: the copies of one and a half spreads, a step of a Mooncake
// trace, or the arrivals of one window of a ServeGen trace, whose description alone
// it holds as a whole. Every random number is from an explicit seed, so the same input gives
// the same requests. It must never open a file by itself, look at a clock or
// decide how requests are served.
//
// Read Request and Stream first; then Open, which knows the formats by their
// content (plain, Azure, Mooncake and ServeGen), Examples and Named (synthetic loads from
// published figures), Synthetic (what they are made of), Rate, From and Limit, which wrap
// another stream, and Dispersion, which says how arrivals scatter.
package workload
