// Package replay tries scaling policies on a load in virtual time: the autoscaler's own
// decision and the published rules of others, each in the same simulated world with the
// same requests, and measures what each of them cost and kept.
//
// A policy sees the world as a real one does: through scrapes of the replicas' metrics,
// with their delay. It must never look into the future. Only Bound does, which is a measure
// and no policy, and peak, which is a fleet found by hindsight.
//
// A policy is named by its Spec: a family and its settings, as in hpa:rps=4.5,down=60s.
// Each rule of others is built from what they publish, which its doc comment names, and
// tested against their examples. Here are HPA and KEDA. Rules that only benchmarks try live
// outside and plug in as a Family (Register): they see a View, answer with an Answer, and
// may build on Driven, which scales one variant of each model.
//
// It has no clock and no input or output: the same scenario, requests and seed give the
// same result on every machine.
//
// Read Scenario, Policy and Spec first, then Run, then Result and Recording.
package replay
