package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
)

// whole is the share of a device that a pod without a share takes, in thousandths.
const whole = 1000

// maxDevices is the largest number of devices on one node that a state holds.
const maxDevices = 16

// Node is one line of a list of nodes.
type Node struct {
	Name      string
	MilliCPU  int64
	MemoryMiB int64
	Devices   int
	Model     string
}

// Pod is one line of a list of pods. Share is what it takes of each of its devices,
// in thousandths, and 0 without devices. Models are the models it accepts, separated
// by |, and empty when any will do.
type Pod struct {
	Name      string
	MilliCPU  int64
	MemoryMiB int64
	Devices   int
	Share     int
	Models    string
}

// Demand is the pod's devices in thousandths.
func (p *Pod) Demand() int64 { return int64(p.Devices) * int64(p.Share) }

// readFile opens a list and hands it to its parser, which names the file in errors.
func readFile[T any](path string, parse func(io.Reader, string) ([]T, error)) ([]T, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading the list: %w", err)
	}
	defer file.Close() //nolint:errcheck // the file is only read
	return parse(file, path)
}

// parseNodes reads a list of nodes: sn, cpu_milli, memory_mib, gpu, model. Nodes
// without devices are left out, as the study does.
func parseNodes(r io.Reader, name string) ([]Node, error) {
	t, err := newTable(r, name, "sn", "cpu_milli", "memory_mib", "gpu", "model")
	if err != nil {
		return nil, err
	}
	var nodes []Node
	for t.next() {
		n := Node{
			Name: t.text("sn"), Model: t.text("model"),
			MilliCPU: t.number("cpu_milli", math.MaxInt32), MemoryMiB: t.number("memory_mib", math.MaxInt32),
			Devices: int(t.number("gpu", maxDevices)),
		}
		if n.Devices > 0 && n.Model == "" {
			t.fail("node %s has devices and no model", n.Name)
		}
		if n.Devices > 0 {
			nodes = append(nodes, n)
		}
	}
	if t.err == nil && len(nodes) == 0 {
		t.err = fmt.Errorf("%s: no node has a device", name)
	}
	return nodes, t.err
}

// parsePods reads a list of pods: name, cpu_milli, memory_mib, num_gpu, gpu_milli and,
// where the list has it, gpu_spec.
func parsePods(r io.Reader, name string) ([]Pod, error) {
	t, err := newTable(r, name, "name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
	if err != nil {
		return nil, err
	}
	var pods []Pod
	for t.next() {
		p := Pod{
			Name:     t.text("name"),
			MilliCPU: t.number("cpu_milli", math.MaxInt32), MemoryMiB: t.number("memory_mib", math.MaxInt32),
			Devices: int(t.number("num_gpu", maxDevices)), Share: int(t.number("gpu_milli", whole)),
			Models: canonical(t.text("gpu_spec")),
		}
		switch {
		case p.Devices > 0 && p.Share == 0:
			t.fail("pod %s asks for %d devices and no thousandth of them", p.Name, p.Devices)
		case p.Devices > 1 && p.Share < whole:
			t.fail("pod %s asks for a share of %d devices: the study knows shares of one device only", p.Name, p.Devices)
		case p.Devices == 0:
			p.Share, p.Models = 0, ""
		}
		pods = append(pods, p)
	}
	if t.err == nil && !slices.ContainsFunc(pods, func(p Pod) bool { return p.Devices > 0 }) {
		t.err = fmt.Errorf("%s: no pod asks for a device", name)
	}
	return pods, t.err
}

// canonical writes a set of models in one way: sorted, each once, no blanks.
func canonical(models string) string {
	var names []string
	for _, m := range strings.Split(models, "|") {
		if m = strings.TrimSpace(m); m != "" {
			names = append(names, m)
		}
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), "|")
}

// table reads a file with a header line, by the names of the columns. The first
// error stays, with file and line.
type table struct {
	name    string
	reader  *csv.Reader
	columns map[string]int
	row     []string
	line    int
	err     error
}

func newTable(r io.Reader, name string, needed ...string) (*table, error) {
	t := &table{name: name, reader: csv.NewReader(r), columns: map[string]int{}, line: 1}
	header, err := t.reader.Read()
	if err != nil {
		return nil, fmt.Errorf("%s: line 1: reading the header: %w", name, err)
	}
	for i, column := range header {
		t.columns[strings.TrimSpace(strings.TrimPrefix(column, "\ufeff"))] = i
	}
	for _, column := range needed {
		if _, found := t.columns[column]; !found {
			return nil, fmt.Errorf("%s: line 1: no column %s; the columns needed are %s", name, column, strings.Join(needed, ", "))
		}
	}
	return t, nil
}

func (t *table) next() bool {
	if t.err != nil {
		return false
	}
	row, err := t.reader.Read()
	if errors.Is(err, io.EOF) {
		return false
	}
	if err != nil { // it names the line itself
		t.err = fmt.Errorf("%s: %w", t.name, err)
		return false
	}
	t.row = row
	t.line, _ = t.reader.FieldPos(0)
	return true
}

func (t *table) fail(format string, args ...any) {
	if t.err == nil {
		t.err = fmt.Errorf("%s: line %d: %s", t.name, t.line, fmt.Sprintf(format, args...))
	}
}

// text is the value of a column, empty where the list does not have it.
func (t *table) text(column string) string {
	i, found := t.columns[column]
	if !found {
		return ""
	}
	return strings.TrimSpace(t.row[i])
}

// number is a whole number from 0 to most; an empty field is 0.
func (t *table) number(column string, most int64) int64 {
	text := t.text(column)
	if text == "" {
		return 0
	}
	v, err := strconv.ParseInt(text, 10, 64)
	if err != nil || v < 0 || v > most {
		t.fail("column %s: %q is not a whole number from 0 to %d", column, text, most)
		return 0
	}
	return v
}
