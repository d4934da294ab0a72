// Soak runs a whole local cluster under load that varies while its parts are killed and
// started again at random, and judges at the end what came of it: `make soak`.
//
// The API server, etcd, the controllers, bin/scheduler, two bin/manager of which one
// leads, a third manager that nobody kills, and Prometheus are real processes; KWOK plays
// the nodes, and package emulation the model servers behind real HTTP. What happens is
// drawn from a seed: manager, scheduler, Prometheus and API server are killed, nodes are
// cordoned and come back, ConfigMaps are edited, also wrongly, Deployments are deleted and
// created again, and HorizontalPodAutoscalers come and go.
//
// The judge (judge.go) is pure. It reads the API server's audit log, what was done when,
// and samples of the programs' memory. It must never excuse a write because of what was
// going on, but by the rules that stand there.
//
// Read options and soak in main.go first, then chaos.go and judge.go.
package main
