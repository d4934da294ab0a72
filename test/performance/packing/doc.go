// Command packing replays the published study of packing on the openb trace by its
// rules, under several policies, and says how many per cent of the devices each of them
// hands out:
//
//	go run ./test/performance/packing --data DIR [--list FILE] [--seeds 10] [--out bench-packing.json]
//
// The policies are random; bestfit; gradient, our own writing of the published
// fragmentation gradient; and ours, the formula of pkg/capacity/placement with shares of
// devices, which the scheduler's own types do not carry, and one term more that only shares
// have: the prices of the gaps on devices. On whole devices both are equal, which a test
// shows. docs/benchmarks-parts.md has what was measured.
//
// Every policy sees the same stream and the same order of nodes for a seed, no pod that
// fits is refused, and everything follows from the seed: two runs write the same bytes.
//
// Read Study and Stream first, then Policy and replay, then ours.
package main
