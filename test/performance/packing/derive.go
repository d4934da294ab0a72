package main

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
)

// The lists that can be derived from another one, to see whether a policy holds for
// mixes that it was not tried on. They change one thing each, as the further lists of
// the published set do, and are drawn from a fixed seed.
var derivations = map[string]func(*deriver){
	// Of the devices asked for, so many per cent by pods of several devices.
	"multi20": func(d *deriver) { d.several(20) },
	"multi50": func(d *deriver) { d.several(50) },
	// Of the devices asked for, so many per cent by pods with shares.
	"share0":   func(d *deriver) { d.shares(0) },
	"share60":  func(d *deriver) { d.shares(60) },
	"share100": func(d *deriver) { d.shares(100) },
	// Pods without devices, in per cent of what there were.
	"cpu0":   func(d *deriver) { d.without(0) },
	"cpu250": func(d *deriver) { d.without(250) },
	// So many per cent of the pods with devices name models, as often as the cluster
	// has devices of them, or (rare) rare models about as often as common ones.
	"spec10":     func(d *deriver) { d.named(10, false) },
	"spec33":     func(d *deriver) { d.named(33, false) },
	"spec33rare": func(d *deriver) { d.named(33, true) },
	"spec100":    func(d *deriver) { d.named(100, false) },
	// Every share is of another size, drawn anew for each of the three: what the list
	// says of sizes that go together is gone.
	"sizes1": func(d *deriver) { d.resized(1) },
	"sizes2": func(d *deriver) { d.resized(2) },
	"sizes3": func(d *deriver) { d.resized(3) },
}

type deriver struct {
	random *rand.Rand
	nodes  []Node
	all    []Pod
	// The pods by what they ask for.
	none, part, one, many []Pod
	demand                int64
	out                   []Pod
}

// derive makes the list of that name out of another one.
func derive(name string, nodes []Node, pods []Pod) ([]Pod, error) {
	fill, known := derivations[name]
	if !known {
		return nil, fmt.Errorf("there is no derived list %q; there are %s", name, strings.Join(slices.Sorted(maps.Keys(derivations)), ", "))
	}
	d := &deriver{random: rand.New(rand.NewPCG(99, 1)), nodes: nodes, all: pods}
	for _, p := range pods {
		d.demand += p.Demand()
		switch {
		case p.Devices == 0:
			d.none = append(d.none, p)
		case p.Share < whole:
			d.part = append(d.part, p)
		case p.Devices == 1:
			d.one = append(d.one, p)
		default:
			d.many = append(d.many, p)
		}
	}
	fill(d)
	for i := range d.out {
		d.out[i].Name = fmt.Sprintf("pod-%06d", i)
	}
	return d.out, nil
}

// sample draws pods with replacement until they ask for so much.
func (d *deriver) sample(from []Pod, demand int64) {
	for demand > 0 && len(from) > 0 {
		p := from[d.random.IntN(len(from))]
		demand -= p.Demand()
		d.out = append(d.out, p)
	}
}

func demandOf(pods []Pod) int64 {
	sum := int64(0)
	for i := range pods {
		sum += pods[i].Demand()
	}
	return sum
}

func (d *deriver) several(pct int64) {
	d.out = slices.Concat(d.none, d.part)
	d.sample(d.many, d.demand*pct/100)
	d.sample(d.one, d.demand-d.demand*pct/100-demandOf(d.part))
}

func (d *deriver) shares(pct int64) {
	d.out = slices.Clone(d.none)
	d.sample(d.part, d.demand*pct/100)
	rest := d.demand - d.demand*pct/100
	if many := demandOf(d.many); rest > many {
		d.out = append(d.out, d.many...)
		d.sample(d.one, rest-many)
	} else {
		d.sample(d.many, rest)
	}
}

func (d *deriver) without(pct int) {
	d.out = slices.Concat(d.part, d.one, d.many)
	for range len(d.none) * pct / 100 {
		d.out = append(d.out, d.none[d.random.IntN(len(d.none))])
	}
}

// resized gives all pods of one share the same other share, in hundredths of a device.
func (d *deriver) resized(seed uint64) {
	random := rand.New(rand.NewPCG(99, 1+seed))
	sizes := map[int]int{}
	for i := range d.part {
		sizes[d.part[i].Share] = 0
	}
	for _, share := range slices.Sorted(maps.Keys(sizes)) {
		sizes[share] = (1 + random.IntN(99)) * whole / 100
	}
	d.out = slices.Clone(d.all)
	for i := range d.out {
		if size, ok := sizes[d.out[i].Share]; ok && d.out[i].Devices > 0 {
			d.out[i].Share = size
		}
	}
}

// named lets pods name a model, or a model and the next in the order of names, that has
// a node on which they fit.
func (d *deriver) named(pct int, rare bool) {
	devices := map[string]int{}
	for i := range d.nodes {
		devices[d.nodes[i].Model] += d.nodes[i].Devices
	}
	names := slices.Sorted(maps.Keys(devices))
	var tickets []string
	for i, name := range names {
		set := name
		if i+1 < len(names) && i%4 == 3 {
			set += "|" + names[i+1]
		}
		for n := range devices[name] {
			if !rare || n < 200 {
				tickets = append(tickets, set)
			}
		}
	}
	for _, p := range d.all {
		if p.Devices > 0 && d.random.IntN(100) < pct {
			for range 100 {
				set := tickets[d.random.IntN(len(tickets))]
				if d.somewhere(&p, set) {
					p.Models = set
					break
				}
			}
		}
		d.out = append(d.out, p)
	}
}

// somewhere says whether a node of the models has room for the pod when it is empty.
func (d *deriver) somewhere(p *Pod, set string) bool {
	return slices.ContainsFunc(d.nodes, func(n Node) bool {
		return slices.Contains(strings.Split(set, "|"), n.Model) && n.Devices >= p.Devices && n.MilliCPU >= p.MilliCPU && n.MemoryMiB >= p.MemoryMiB
	})
}
