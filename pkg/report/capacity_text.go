package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// Detail is how much of a capacity is shown.
type Detail struct {
	// All shows every node by itself; else equal nodes share a line, and those
	// without devices another one.
	All bool
	// Wide adds columns.
	Wide bool
}

// What the cells of devices say beside the letters of variants.
const (
	cellFree    = '.'
	cellOut     = 'x'
	cellOther   = '#'
	cellFurther = '+'
	cellUnknown = '?'
)

// letters are the marks of variants, in the order of the variants. Those beyond
// share cellFurther.
const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwyz0123456789"

// variantTones are the colours of variants, black on a colour that tells neighbours
// apart; the letter tells the rest.
var variantTones = []tone{
	"\x1b[30;42m", "\x1b[30;44m", "\x1b[30;43m", "\x1b[30;45m", "\x1b[30;46m",
	"\x1b[30;102m", "\x1b[30;104m", "\x1b[30;103m", "\x1b[30;105m", "\x1b[30;106m",
}

// maxCells is the most cells that one node is drawn with; the rest is a number.
const maxCells = 64

// Table renders the capacity as lines for people.
func (c Capacity) Table(style Style, detail Detail) []string {
	v := &capacityView{Capacity: c.complete(), style: style, detail: detail, marks: map[string]mark{}}
	for i, variant := range v.Variants {
		m := mark{letter: cellFurther, tone: variantTones[i%len(variantTones)]}
		if i < len(letters) {
			m.letter = rune(letters[i])
		}
		v.marks[variant.Key()] = m
	}
	var lines []string
	for _, section := range [][]string{v.nodes(), v.variants(), v.explanations(), v.accelerators(), v.relocations(), v.notes()} {
		if len(section) > 0 && len(lines) > 0 {
			lines = append(lines, "")
		}
		lines = append(lines, section...)
	}
	return lines
}

type capacityView struct {
	Capacity
	style  Style
	detail Detail
	marks  map[string]mark
	used   [utf8.RuneSelf]bool
}

// mark is how the devices of one variant are drawn.
type mark struct {
	letter rune
	tone   tone
}

// group are nodes that look the same.
type group struct {
	nodes []*NodeCapacity
	// pools are those of each of the nodes, drawn.
	pools [][]cell
}

// nodes shows the devices of all nodes, one cell each.
func (v *capacityView) nodes() []string {
	t := table{columns: []column{{name: "NODES"}, {name: "ACCELERATOR"}, {name: "FREE", right: true}, {name: "DEVICES"}, {name: "STATE"}}}
	if v.detail.Wide {
		t.columns = append(t.columns, column{name: "CPU FREE", right: true}, column{name: "MEMORY FREE", right: true}, column{name: "PODS FREE", right: true})
	}
	bare, bareOut := 0, 0
	for _, g := range v.groups() {
		first := g.nodes[0]
		if len(first.Pools) == 0 && !v.detail.All && !v.detail.Wide {
			bare += len(g.nodes)
			if first.Out != "" {
				bareOut += len(g.nodes)
			}
			continue
		}
		v.addGroup(&t, g)
	}
	lines := t.lines(v.style)
	if len(v.Nodes) == 0 {
		lines = []string{"there are no nodes"}
	}
	if bare > 0 {
		text := counted(bare, "node without devices", "nodes without devices")
		if bareOut > 0 {
			text += fmt.Sprintf(", %d of them out", bareOut)
		}
		lines = append(lines, v.style.paint(faint, text))
	}
	return append(lines, v.legend()...)
}

func (v *capacityView) addGroup(t *table, g *group) {
	first := g.nodes[0]
	name := first.Name
	if more := len(g.nodes) - 1; more > 0 {
		name += fmt.Sprintf(" and %d like it", more)
	}
	state := cell{text: first.Reason, tone: odd}
	if first.Out != "" {
		state = cell{text: "out: " + cmp.Or(first.Reason, first.Out), tone: bad}
	}
	rows := g.pools
	if len(rows) == 0 {
		rows = [][]cell{{{text: unknown, tone: faint}, {}, {}}}
	}
	for i, pool := range rows {
		row := append([]cell{{text: name}}, pool...)
		row = append(row, state)
		if v.detail.Wide {
			row = append(row, cell{text: cores(first.FreeMilliCPU)}, cell{text: gibibytes(first.FreeMemoryBytes)}, cell{text: whole(first.FreePods)})
		}
		if i > 0 {
			// Further devices of the same node.
			row[0], row = cell{}, row[:4]
		}
		t.rows = append(t.rows, row)
	}
}

// groups are the nodes in the order in which they are shown: by accelerator, those
// that are out last, then by name.
func (v *capacityView) groups() []*group {
	var all []*group
	known := map[string]*group{}
	for i := range v.Nodes {
		node := &v.Nodes[i]
		g := &group{nodes: []*NodeCapacity{node}}
		looks := node.Out + "\x00" + node.Reason
		for _, pool := range node.Pools {
			drawn := v.pool(node, pool)
			for _, c := range drawn {
				looks += "\x00" + c.text
			}
			g.pools = append(g.pools, drawn)
		}
		if same := known[looks]; same != nil && !v.detail.All && !v.detail.Wide {
			same.nodes = append(same.nodes, node)
			continue
		}
		known[looks] = g
		all = append(all, g)
	}
	slices.SortStableFunc(all, func(a, b *group) int {
		return cmp.Or(cmp.Compare(a.order(), b.order()), compareNatural(a.nodes[0].Name, b.nodes[0].Name))
	})
	return all
}

// order sorts nodes with devices first.
func (g *group) order() string {
	n := g.nodes[0]
	key := "1"
	if len(n.Pools) > 0 {
		key = "0" + n.Pools[0].Accelerator
	}
	if n.Out != "" {
		key += "\x01"
	}
	return key
}

// pool is the accelerator, the free devices and the cells of one pool.
func (v *capacityView) pool(n *NodeCapacity, p PoolCapacity) []cell {
	name := cell{text: p.Accelerator}
	if p.Accelerator == "" {
		name = cell{text: "unknown", tone: odd}
	}
	free := cell{text: fmt.Sprintf("%s/%d", whole(p.Free), p.Devices)}
	if p.Free != nil && *p.Free < 0 {
		free.tone = bad
	}
	return []cell{name, free, v.cells(n, p)}
}

// run is a number of devices that are drawn alike.
type run struct {
	cell  rune
	tone  tone
	count int
}

// cells draws the devices of a pool: those that are held by the pods that hold them,
// then the free ones.
func (v *capacityView) cells(n *NodeCapacity, p PoolCapacity) cell {
	var runs []run
	held := 0
	for _, h := range p.Holders {
		m, ok := v.marks[h.Variant]
		if !ok {
			m = mark{letter: cellOther, tone: faint}
		}
		runs = append(runs, run{m.letter, m.tone, h.Devices})
		held += h.Devices
	}
	rest := run{cell: cellFree, count: p.Devices - held}
	switch {
	case p.Free == nil:
		rest.cell, rest.tone = cellUnknown, faint
	case n.Out != "":
		rest.cell, rest.tone = cellOut, bad
	}
	return v.draw(append(runs, rest))
}

// draw draws runs of devices, maxCells at most.
func (v *capacityView) draw(runs []run) cell {
	all := cell{parts: []cell{{text: "["}}}
	room, more := maxCells, 0
	for _, r := range runs {
		if r.count <= 0 {
			continue
		}
		v.used[r.cell] = true
		shown := min(r.count, room)
		room -= shown
		more += r.count - shown
		all.parts = append(all.parts, cell{text: strings.Repeat(string(r.cell), shown), tone: r.tone})
	}
	all.parts = append(all.parts, cell{text: "]"})
	if more > 0 {
		all.parts = append(all.parts, cell{text: fmt.Sprintf(" %d more", more)})
	}
	for _, c := range all.parts {
		all.text += c.text
	}
	return all
}

// legend explains the cells that occur; the letters are explained by the variants.
func (v *capacityView) legend() []string {
	var parts []string
	for _, c := range []struct {
		cell    rune
		meaning string
	}{
		{cellFree, "free"}, {cellOut, "free, but the node is out"}, {cellOther, "held by other pods"},
		{cellFurther, "held by a variant beyond the letters"}, {cellUnknown, "not known"},
	} {
		if v.used[c.cell] {
			parts = append(parts, string(c.cell)+" "+c.meaning)
		}
	}
	if len(parts) == 0 {
		return nil
	}
	return []string{v.style.paint(faint, "letters: the variants below; "+strings.Join(parts, "; "))}
}

func (v *capacityView) variants() []string {
	if len(v.Variants) == 0 {
		return nil
	}
	t := table{columns: []column{{}, {name: "VARIANT"}, {name: "TAKES"}, {name: "PLACED", right: true}, {name: "WAITING", right: true}, {name: "SLOTS", right: true}, {name: "LARGEST HOLE", right: true}}}
	if v.detail.Wide {
		t.columns = append(t.columns, column{name: "CPU", right: true}, column{name: "MEMORY", right: true}, column{name: "TARGET"}, column{name: "MODEL"})
	}
	t.columns = append(t.columns, column{name: "BOUND"})
	for _, variant := range v.Variants {
		m := v.marks[variant.Key()]
		row := []cell{{text: string(m.letter), tone: m.tone}, {text: variant.Key()}, {text: variant.takes()},
			{text: whole(variant.Placed)}, {text: whole(variant.Waiting), tone: when(variant.Waiting != nil && *variant.Waiting > 0, odd)},
			variant.slots(), {text: whole(variant.LargestHole)}}
		if v.detail.Wide {
			cpu, memory := unknown, unknown
			if s := variant.Shape; s != nil {
				cpu, memory = cores(&s.MilliCPU), gibibytes(&s.MemoryBytes)
			}
			row = append(row, cell{text: cpu}, cell{text: memory}, cell{text: variant.Target}, cell{text: variant.Model})
		}
		bound := cell{}
		if variant.SlotsBound != "" {
			bound.text = "upper bound: " + variant.SlotsBound
		}
		t.rows = append(t.rows, append(row, bound))
	}
	return t.lines(v.style)
}

func (v VariantCapacity) takes() string {
	if v.Shape == nil {
		return unknown
	}
	return v.Shape.Text
}

func (v VariantCapacity) slots() cell {
	switch {
	case v.Slots == nil:
		return cell{text: unknown, tone: odd}
	case v.SlotsBound != "" && *v.Slots > 0:
		return cell{text: fmt.Sprintf("<=%d", *v.Slots)}
	case *v.Slots == 0:
		return cell{text: "0", tone: bad}
	default:
		return cell{text: fmt.Sprint(*v.Slots)}
	}
}

// explanations say why a variant has no slots, or why they are not known.
func (v *capacityView) explanations() []string {
	var lines []string
	for _, variant := range v.Variants {
		if variant.Explanation != "" {
			lines = append(lines, v.style.wrap(variant.Key()+": "+variant.Explanation)...)
		}
	}
	return lines
}

func (v *capacityView) accelerators() []string {
	if len(v.Accelerators) == 0 {
		return nil
	}
	t := table{columns: []column{{name: "ACCELERATOR"}, {name: "NODES", right: true}, {name: "OUT", right: true}, {name: "DEVICES", right: true},
		{name: "FREE", right: true}, {name: "UNUSABLE", right: true}, {name: "LARGEST HOLE", right: true}}}
	for _, a := range v.Accelerators {
		name := cell{text: a.Accelerator}
		if a.Accelerator == "" {
			name = cell{text: "unknown", tone: odd}
		}
		t.rows = append(t.rows, []cell{name, {text: fmt.Sprint(a.Nodes)}, {text: fmt.Sprint(a.NodesOut), tone: when(a.NodesOut > 0, bad)}, {text: fmt.Sprint(a.Devices)},
			{text: whole(a.Free)}, {text: whole(a.Unusable), tone: when(a.Unusable != nil && *a.Unusable > 0, odd)}, {text: whole(a.LargestHole)}})
	}
	return append(t.lines(v.style), v.style.paint(faint, "unusable: free devices that no replica of a variant can use, for want of others beside them"))
}

func (v *capacityView) relocations() []string {
	var lines []string
	for _, r := range v.Relocations {
		lines = append(lines, fmt.Sprintf("room for one more replica of %s (%s) would be on %s after:", r.Variant, r.Shape, r.Node))
		t := table{columns: []column{{}, {}, {}, {}}}
		for _, m := range r.Moves {
			t.rows = append(t.rows, []cell{{text: " "}, {text: m.Pod}, {text: m.Shape}, {text: m.From + " -> " + m.To}})
		}
		lines = append(lines, t.lines(v.style)...)
	}
	return lines
}

func (v *capacityView) notes() []string {
	var lines []string
	for _, note := range v.Notes {
		lines = append(lines, v.style.wrap("note: "+note)...)
	}
	return lines
}

func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func whole(n *int) string {
	if n == nil {
		return unknown
	}
	return fmt.Sprint(*n)
}

// cores shows thousandths of a core as cores.
func cores(milli *int64) string {
	if milli == nil {
		return unknown
	}
	return fmt.Sprintf("%g", math.Round(float64(*milli)/100)/10)
}

func gibibytes(bytes *int64) string {
	if bytes == nil {
		return unknown
	}
	return fmt.Sprintf("%gGi", math.Round(float64(*bytes)/(1<<30)*10)/10)
}
