package acceleratorplacement

import (
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// subsystem is the first word of all metrics of the plugin.
const subsystem = "acceleratorplacement"

// stock is what the plugin last found out about the cluster, for the gauges. It
// never changes once made.
type stock struct {
	slots       map[capacity.Shape]int
	free        map[capacity.Accelerator]int
	fragmented  map[capacity.Accelerator]int
	unplaceable map[string]int
	foreign     int
}

// refusals counts what kubelets refused.
var refusals = metrics.NewCounterVec(&metrics.CounterOpts{
	Subsystem:      subsystem,
	Name:           "kubelet_refusals_total",
	Help:           "Pods that a kubelet refused for lack of devices while this scheduler led, by the reason of the failed pod. Any number above 0 means that something else places pods with devices on the same nodes.",
	StabilityLevel: metrics.ALPHA,
}, []string{"profile", "reason"})

// gauges serves what the profiles last found out. A collector keeps no series of
// shapes and accelerators that are gone, and makes none before something is known.
type gauges struct {
	metrics.BaseStableCollector
	// found holds the *stock of each profile by its name.
	found sync.Map
	// current holds for each profile whether its variants are read, a func() bool.
	current sync.Map
}

func gauge(name, help string, labels ...string) *metrics.Desc {
	return metrics.NewDesc(metrics.BuildFQName("", subsystem, name), help, append([]string{"profile"}, labels...), nil, metrics.ALPHA, "")
}

var (
	cluster = &gauges{}

	freeSlots = gauge("free_slots",
		"How many more pods of a variant's shape fit now, if nothing else is placed: by the same count as wva_variant_free_slots, which also leaves room for replicas that were asked for and are not placed yet. Of several variants of one shape, that of which the most fit. Pods of a variant without a ReplicaSet or StatefulSet that the scheduler sees may use every node. Where the scheduler may not read runtime classes, priority classes or resource quotas, at most that many fit.",
		"shape", "device_memory_gib", "form", "cpu", "memory")
	freeDevices = gauge("free_devices",
		"Devices that no pod holds, on nodes that take pods.",
		"accelerator")
	fragmentedDevices = gauge("fragmented_devices",
		"Free devices that no mix of the variants' shapes can use where they are.",
		"accelerator")
	unplaceablePods = gauge("unplaceable_pods",
		"Pods with devices that found no node, by what the best nodes lacked.",
		"reason")
	foreignPods = gauge("foreign_pods",
		"Pods of another scheduler on nodes whose taint gives them to this one. Pods without devices are left out when they belong to a DaemonSet, are static, or tolerate every taint.")
	variantsKnown = gauge("variants_known",
		"1 while the VariantAutoscaling objects are read, or their CRD is not installed. 0 while they cannot be read: pods with devices then wait a little, and are placed without them or by what was read last.")

	registerOnce sync.Once
)

// registerMetrics adds the metrics to the registry that the scheduler serves.
func registerMetrics() {
	registerOnce.Do(func() {
		legacyregistry.MustRegister(refusals)
		legacyregistry.CustomMustRegister(cluster)
	})
}

// report publishes what a profile found out.
func (g *gauges) report(profile string, s *stock) { g.found.Store(profile, s) }

// watch publishes whether a profile's variants are read.
func (g *gauges) watch(profile string, current func() bool) { g.current.Store(profile, current) }

// DescribeWithStability implements metrics.StableCollector.
func (g *gauges) DescribeWithStability(ch chan<- *metrics.Desc) {
	for _, d := range []*metrics.Desc{freeSlots, freeDevices, fragmentedDevices, unplaceablePods, foreignPods, variantsKnown} {
		ch <- d
	}
}

// CollectWithStability implements metrics.StableCollector.
func (g *gauges) CollectWithStability(ch chan<- metrics.Metric) {
	g.current.Range(func(profile, current any) bool {
		value := 0.0
		if current.(func() bool)() {
			value = 1
		}
		ch <- metrics.NewLazyConstMetric(variantsKnown, metrics.GaugeValue, value, profile.(string))
		return true
	})
	g.found.Range(func(profile, found any) bool {
		s := found.(*stock)
		emit := func(d *metrics.Desc, value int, labels ...string) {
			ch <- metrics.NewLazyConstMetric(d, metrics.GaugeValue, float64(value), append([]string{profile.(string)}, labels...)...)
		}
		for shape, slots := range s.slots {
			emit(freeSlots, slots, shape.String(), numberOrNone(shape.MemoryGiB), shape.Form, cpuText(shape.MilliCPU), memoryText(shape.MemoryBytes))
		}
		for a, count := range s.free {
			emit(freeDevices, count, string(a))
		}
		for a, count := range s.fragmented {
			emit(fragmentedDevices, count, string(a))
		}
		for reason, count := range s.unplaceable {
			emit(unplaceablePods, count, reason)
		}
		emit(foreignPods, s.foreign)
		return true
	})
}

// numberOrNone is empty for a number that is not said.
func numberOrNone(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// cpuText and memoryText are requests as people write them.
func cpuText(milli int64) string {
	return resource.NewMilliQuantity(milli, resource.DecimalSI).String()
}

func memoryText(bytes int64) string {
	return resource.NewQuantity(bytes, resource.BinarySI).String()
}
