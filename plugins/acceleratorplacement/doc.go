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
// A pod's variant is found by owner references, never by a label. A rule that only
// this plugin knows is invisible to node autoscalers, so the template should also
// say it as a node selector or node affinity.
//
// Read Plugin and want first, then variants (which objects there are) and view (a
// node as the capacity model sees it).
package acceleratorplacement
