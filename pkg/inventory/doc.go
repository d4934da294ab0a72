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
// The sources of a device's type, the most trusted first:
//
//   - the node's label inference.optimization/acceleratorName,
//   - the operator's overrides (ParseOverrides), for the value of any product label,
//   - the vendor's own discovery, which reads the device,
//   - the labels of clouds and node autoscalers, which follow their settings,
//   - tables of device ids.
//
// Where two sources differ, the more trusted one counts, and the node's Reason says so;
// for an override that is its purpose, so no reason is given. Where two sources of one
// rank differ, the type is unknown, and no variant counts the node. A slice or a shared
// device is never counted as a whole device, whatever type a source names.
//
// Devices of which no label says anything are of unknown type too, but for the variant
// whose own pods hold some of them.
//
// A node that is part of a slice over several hosts, as TPU topologies have them, is of
// unknown type: its devices are given out with those of the other hosts alone, and
// replicas that span nodes are not modelled.
//
// The defaults that a LimitRange gives to containers without requests are not seen in a
// template, because admission adds them to pods. A template is counted without them, and
// its pods with them. So in a namespace with such defaults, the count of a template that
// names no CPU and memory can be too high.
//
// Read Name and families (the table of conventions) first, then Carried (one node, for
// both programs), Inventory (all of them) and Inventory.Request.
package inventory
