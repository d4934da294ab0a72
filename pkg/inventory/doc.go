// Package inventory turns nodes, pods, pod templates and labels into the types of
// the capacity model: which accelerators a node carries, what is free on it, and
// what one replica of a template takes. The autoscaler and the scheduler plugin
// both read the cluster through it.
//
// It is the only place that knows a vendor's label or resource. It talks to no API
// server. It never guesses: what the labels do not say, or say in two ways, stays
// unknown with the reason kept, and what a template asks for beyond the model is
// named.
//
// Whose word counts, those first that are believed first:
//
//   - the node's label inference.optimization/acceleratorName,
//   - the operator's overrides (ParseOverrides), for the value of any product label,
//   - the vendor's own discovery, which has looked at the device,
//   - the labels of clouds and node autoscalers, which were told,
//   - tables of device ids.
//
// A higher source that a lower one contradicts is believed, and the node's Reason
// says so (an override is there to contradict). Two sources of one rank that
// contradict each other leave the type unknown: such a node is neither of the type
// nor of another one. Nobody makes a whole device of a slice or of a shared device by
// naming its type.
//
// A node that is part of a slice over several hosts, as TPU topologies have them, is of
// unknown type: its devices are given out with those of the other hosts alone, and
// replicas that span nodes are not modelled.
//
// What is not seen: the defaults that a LimitRange gives to containers without
// requests. They come when a pod is admitted, so a template is counted without them
// and its pods, once there, with them. Templates that say their CPU and memory are
// counted right; of others, the counts can be too high in a namespace with such
// defaults.
//
// Read Name and kinds (the table of conventions) first, then Carried (one node, for
// both programs), Inventory (all of them) and Inventory.Request.
package inventory
