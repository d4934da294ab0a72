package podmetrics

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/modelserver"
)

const (
	// maxBody bounds an exposition, and maxLine one line of it, in bytes. vLLM's is
	// 100 KB, of which 2 KB are of interest.
	maxBody = 64 << 20
	maxLine = 1 << 20
	// maxKept and maxSeries bound what is of interest on the page of a pod, which nobody
	// need trust. A server of eight engines has fewer than 200 such series. A gateway has
	// a queue for each of its clients: it may have gatewayTimes as many.
	maxKept      = 1 << 20
	maxSeries    = 4096
	gatewayTimes = 16
)

// part says which series of a metric a value is of.
type part byte

const (
	whole part = iota
	sumPart
	countPart
)

// meaning is what a name means.
type meaning struct {
	quantity modelserver.Quantity
	// name is the place of the name in its row: the lower one counts.
	name int
	part part
}

// vocabulary is a part of the table, by name.
type vocabulary struct {
	names map[string]meaning
	only  map[modelserver.Quantity]modelserver.Metric
	ranks []string
	// times is how often the bounds of a page may be taken.
	times int
}

func vocabularyOf(rows []modelserver.Metric) vocabulary {
	v := vocabulary{names: map[string]meaning{}, only: map[modelserver.Quantity]modelserver.Metric{}, ranks: modelserver.RankLabels(), times: 1}
	for _, m := range rows {
		v.only[m.Quantity] = m
		if m.Quantity >= modelserver.GatewayQueue {
			v.times = gatewayTimes
		}
		for i, name := range m.Names {
			if m.Series == modelserver.Histogram {
				v.names[name+"_sum"] = meaning{m.Quantity, i, sumPart}
				v.names[name+"_count"] = meaning{m.Quantity, i, countPart}
				continue
			}
			v.names[name] = meaning{m.Quantity, i, whole}
		}
	}
	return v
}

// key names a series of one target.
type key struct {
	meaning
	// model is set for a gateway alone.
	model decision.ModelKey
	// labels tell the series of one meaning apart.
	labels string
}

// exposition is what one scrape showed.
type exposition map[key]float64

// parse reads the text format. Lines of no interest, which are nearly all, are
// dropped before they are parsed: a bucket costs as much as a value. Comments go with
// them, and so every value is one of an untyped metric.
func (v vocabulary) parse(body io.Reader) (exposition, error) {
	kept, err := v.keep(body)
	if err != nil {
		return nil, fmt.Errorf("reading the metrics: %w", err)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(kept)
	if err != nil {
		return nil, fmt.Errorf("parsing the metrics: %w", err)
	}
	found := exposition{}
	for name, family := range families {
		for _, m := range family.GetMetric() {
			v.add(found, v.names[name], m)
		}
	}
	return v.engines(found), nil
}

// engines adds up what labels say for each engine. Those labels tell of settings, and a server that
// started anew with others is the same one.
func (v vocabulary) engines(found exposition) exposition {
	all := make(exposition, len(found))
	for k, value := range found {
		if v.only[k.quantity].Series == modelserver.Info {
			k.labels, _, _ = strings.Cut(k.labels, "\n")
		}
		all[k] += value
	}
	return all
}

// keep are the lines of interest.
func (v vocabulary) keep(body io.Reader) (*bytes.Buffer, error) {
	kept, series := &bytes.Buffer{}, 0
	var lists newest
	limited := &io.LimitedReader{R: body, N: maxBody}
	lines := bufio.NewScanner(limited)
	lines.Buffer(make([]byte, 0, 64<<10), maxLine)
	for lines.Scan() {
		line := bytes.TrimLeft(lines.Bytes(), " \t")
		end := bytes.IndexAny(line, "{ \t")
		if end < 0 {
			continue
		}
		means, ok := v.names[string(line[:end])]
		if !ok {
			continue
		}
		line = sampleOf(line, end)
		if means.quantity == modelserver.Adapters {
			lists.add(line)
			continue
		}
		series++
		if series > maxSeries*v.times {
			return nil, fmt.Errorf("there are more than %d series of interest", maxSeries*v.times)
		}
		if kept.Len()+len(line) >= maxKept*v.times {
			return nil, fmt.Errorf("there are more than %d MiB of interest", maxKept*v.times>>20)
		}
		kept.Write(line)
		kept.WriteByte('\n')
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if limited.N <= 0 {
		return nil, fmt.Errorf("there are more than %d MiB", maxBody>>20)
	}
	for _, line := range lists.lines() {
		kept.Write(line)
		kept.WriteByte('\n')
	}
	return kept, nil
}

// newest are the lines with the greatest values. A server that serves many adapters has a line for each
// set of them that was ever in use, and the rest of its page must be read all the same.
type newest struct {
	all []valued
}

type valued struct {
	value float64
	line  []byte
}

// longestList is how long a line is at most that lists adapters, in bytes: MostAdapters names.
const longestList = 32 << 10

func (n *newest) add(line []byte) {
	value, err := strconv.ParseFloat(string(line[bytes.LastIndexAny(line, " \t}")+1:]), 64)
	if err != nil || math.IsNaN(value) || len(line) > longestList {
		return
	}
	n.all = append(n.all, valued{value, bytes.Clone(line)})
	if len(n.all) >= 2*modelserver.MostAdapterLists {
		n.cut()
	}
}

func (n *newest) cut() {
	slices.SortStableFunc(n.all, func(a, b valued) int { return cmp.Compare(b.value, a.value) })
	n.all = n.all[:min(len(n.all), modelserver.MostAdapterLists)]
}

func (n *newest) lines() [][]byte {
	n.cut()
	lines := make([][]byte, len(n.all))
	for i, one := range n.all {
		lines[i] = one.line
	}
	return lines
}

// sampleOf is the name, the labels and the value of a line. What OpenMetrics writes behind them,
// a time in seconds and an example, is not of the format that is parsed. A line of which the
// labels do not end is left as it is, for the parser to name.
func sampleOf(line []byte, name int) []byte {
	blanks := func(at int) int { return len(line) - len(bytes.TrimLeft(line[at:], " \t")) }
	at := blanks(name)
	if at < len(line) && line[at] == '{' {
		end := closing(line[at:])
		if end < 0 {
			return line
		}
		at = blanks(at + end + 1)
	}
	if value := bytes.IndexAny(line[at:], " \t"); value >= 0 {
		return line[:at+value]
	}
	return line
}

// closing is the index of the brace that ends labels, which may have braces in their values; -1
// without one.
func closing(labels []byte) int {
	quoted := false
	for i := 0; i < len(labels); i++ {
		switch c := labels[i]; {
		case c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case c == '}' && !quoted:
			return i
		}
	}
	return -1
}

// add takes one value in. The processes of one engine tell the same; the largest
// counts.
func (v vocabulary) add(found exposition, means meaning, m *dto.Metric) {
	row, value := v.only[means.quantity], m.GetUntyped().GetValue()
	k := key{meaning: means}
	label, wanted := row.Selection(row.Names[means.name])
	switch {
	case label != "" && labelOf(m, label) != wanted:
		return
	case row.Series == modelserver.Info:
		tokens, ok := modelserver.Tokens(labelOf(m, modelserver.LabelBlocks), labelOf(m, modelserver.LabelBlockSize))
		if !ok {
			return
		}
		value, k.labels = tokens, labelOf(m, modelserver.LabelEngine)+"\n"+v.signature(m)
	case row.Series == modelserver.Lists:
		k.labels = labelOf(m, modelserver.LabelRunningAdapters) + betweenLists + labelOf(m, modelserver.LabelWaitingAdapters)
	default:
		k.labels = v.signature(m)
	}
	if means.quantity >= modelserver.GatewayQueue {
		k.model = modelOf(m)
		if k.model.ID == "" {
			return
		}
	}
	if before, twice := found[k]; twice {
		value = largest(before, value)
	}
	found[k] = value
}

// betweenLists is in no label, because it is no text.
const betweenLists = "\xff"

// takeLists takes out what lists adapters, the newest ones of which are kept.
func (x exposition) takeLists() []modelserver.AdapterList {
	var lists []modelserver.AdapterList
	for k, value := range x {
		if k.quantity == modelserver.Adapters {
			running, waiting, _ := strings.Cut(k.labels, betweenLists)
			lists = append(lists, modelserver.AdapterList{Used: value, Running: running, Waiting: waiting})
			delete(x, k)
		}
	}
	return modelserver.NewestLists(lists)
}

func (v vocabulary) signature(m *dto.Metric) string {
	var pairs []string
	for _, l := range m.GetLabel() {
		if !slices.Contains(v.ranks, l.GetName()) {
			pairs = append(pairs, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
		}
	}
	slices.Sort(pairs)
	return strings.Join(pairs, ",")
}

// modelOf prefers the name after the gateway's own rewriting.
func modelOf(m *dto.Metric) decision.ModelKey {
	id := labelOf(m, modelserver.LabelTargetModel)
	if id == "" {
		id = labelOf(m, modelserver.LabelModel)
	}
	return decision.ModelKey{Namespace: labelOf(m, modelserver.LabelNamespace), ID: id}
}

func labelOf(m *dto.Metric, name string) string {
	for _, l := range m.GetLabel() {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}
