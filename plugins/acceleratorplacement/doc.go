// Package acceleratorplacement is the scheduler plugin that puts the pods of a
// variant on nodes with the variant's accelerator, and packs pods with devices so
// that the holes stay large.
//
// It decides which nodes a pod with devices may go to (type and count), and which
// of them costs the replicas still expected the least. Both answers are the
// capacity model's, on the node that the framework hands in: the plugin keeps no
// count of its own. It must never change a node or a pod, never ask the API server
// about a single pod, and never need the VariantAutoscaling CRD: without it, every
// pod is packed neutrally.
//
// A pod's variant is found by owner references, never by a label. They are followed
// through ReplicaSets, StatefulSets and Pods, so that a variant may scale one of
// these, a Deployment, or what owns one of them directly. A variant whose target is
// above a Deployment, such as an object of one's own that makes Deployments, is not
// found, and its pods are packed as those of no variant. Its pods go to the devices
// that the autoscaler resolved, as long as that is of the present object, so that both
// programs mean the same. Where the object itself names none, the pod's own node
// selector comes first, because no other node admits the pod. Pods that select a
// part of a slice over several hosts go to such slices of any type, which the model
// leaves unknown. A pod without a variant, or of a variant whose
// accelerator nothing names yet, may list the types that it accepts in an annotation.
// A rule that only this plugin knows is invisible to node autoscalers, so the template
// should also say it as a node selector or node affinity. The plugin ignores devices of
// resource claims.
//
// A pod with devices costs a comparison with every node of the snapshot, to see which
// Node objects are others than before: about 20 microseconds of CPU for 5,000 nodes,
// 2 % of the time that a fast scheduler takes for a pod. What is scarce among the
// nodes with devices (prices.refresh) takes as long again, spread over many pods. The
// framework tells no generation of Node objects alone
// (every pod that is placed raises a node's), and the informer's events come sooner or
// later than the snapshot has the change: a pod could be turned down by what a node
// was, with no event to come that brings it back.
//
// Slow work runs beside the scheduling of pods: watchStock looks at the whole cluster
// from time to time, works out what is still expected, builds the table of what room is
// worth, and reports in metrics and events what is left and what is wrong.
//
// Read Plugin and preFilterState first, then view (a node as the capacity model sees it),
// catalog (what is remembered of nodes), variants and outlookOf (what there is and
// what is expected), and queue.go (which events bring a pod back, and why no other).
package acceleratorplacement
