package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Class is what pods have in common that the policies look at. Memory is not part of
// it: it only filters.
type Class struct {
	MilliCPU int64
	Devices  int
	Share    int
	// Models are the models of the cluster that do. A class that names only others has
	// none and fits nowhere.
	Models models
	// Count is how many pods of the list are of the class, Popularity their part of all.
	Count      int64
	Popularity float64
	// accepts are the names of the models that do, also of those that the cluster lacks.
	accepts string
}

// partial says whether the class asks for a share of one device.
func (c *Class) partial() bool { return c.Devices > 0 && c.Share < whole }

// demand is what a pod of the class takes of the devices, in thousandths.
func (c *Class) demand() int { return c.Devices * c.Share }

// models is a set of the cluster's models, a bit for each.
type models uint64

const maxModels = 64

func (m models) has(model uint8) bool { return m>>model&1 != 0 }

// Study is a cluster and a list of pods, with all that is the same for every policy and
// seed.
type Study struct {
	Nodes []Node
	// Pods are in the order of their names.
	Pods []Pod
	// Classes are in the order of their popularity.
	Classes []Class
	// classOf is the class of each pod, modelOf the model of each node.
	classOf  []int
	modelOf  []uint8
	names    []string // of the models
	capacity int64    // of all devices, in thousandths
}

func newStudy(nodes []Node, pods []Pod) (*Study, error) {
	s := &Study{Nodes: nodes, Pods: slices.Clone(pods)}
	slices.SortStableFunc(s.Pods, func(a, b Pod) int { return cmp.Compare(a.Name, b.Name) })
	for i := range s.Nodes {
		n := &s.Nodes[i]
		model := slices.Index(s.names, n.Model)
		if model < 0 {
			model = len(s.names)
			s.names = append(s.names, n.Model)
		}
		if len(s.names) > maxModels {
			return nil, fmt.Errorf("the list of nodes has more than %d models, the last of them %s on node %s", maxModels, n.Model, n.Name)
		}
		s.modelOf = append(s.modelOf, uint8(model))
		s.capacity += int64(n.Devices) * whole
	}
	s.classify()
	return s, nil
}

// classify finds the classes. Equally popular ones come in a fixed order.
func (s *Study) classify() {
	everything := slices.Clone(s.names)
	slices.Sort(everything)
	key := func(p *Pod) Class {
		c := Class{MilliCPU: p.MilliCPU, Devices: p.Devices, Share: p.Share, accepts: p.Models}
		if c.Devices > 0 && c.accepts == "" {
			c.accepts = strings.Join(everything, "|")
		}
		return c
	}
	count := map[Class]int64{}
	for i := range s.Pods {
		count[key(&s.Pods[i])]++
	}
	for c := range count {
		s.Classes = append(s.Classes, c)
	}
	slices.SortFunc(s.Classes, func(a, b Class) int {
		return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(b.MilliCPU, a.MilliCPU), cmp.Compare(b.Share, a.Share),
			cmp.Compare(b.Devices, a.Devices), cmp.Compare(b.accepts, a.accepts))
	})
	index := map[Class]int{}
	for i := range s.Classes {
		c := &s.Classes[i]
		index[*c] = i
		c.Count = count[*c]
		c.Popularity = float64(c.Count) / float64(len(s.Pods))
		c.Models = s.setOf(c.accepts)
	}
	for i := range s.Pods {
		s.classOf = append(s.classOf, index[key(&s.Pods[i])])
	}
}

func (s *Study) setOf(names string) models {
	set := models(0)
	for name := range strings.SplitSeq(names, "|") {
		if model := slices.Index(s.names, name); model >= 0 {
			set |= 1 << model
		}
	}
	return set
}
