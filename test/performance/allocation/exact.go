package allocation

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// errNoSolver says how to come by the exact solver.
var errNoSolver = errors.New("the exact solver cbc is not installed: apt-get install coinor-cbc")

// fixed is the tolerance within which an earlier level is held: that part of the
// priority's demand, in the last band. It is as small as that of what is compared: with
// 1e-5 of an important priority a less important one may gain two per cent.
const fixed = 1e-7

// solver runs CBC.
type solver struct {
	path, folder string
	limit        time.Duration
}

func newSolver(limit time.Duration) (*solver, func(), error) {
	path, err := exec.LookPath("cbc")
	if err != nil {
		return nil, nil, errNoSolver
	}
	folder, err := os.MkdirTemp("", "bench-allocation")
	if err != nil {
		return nil, nil, fmt.Errorf("make a folder for the solver: %w", err)
	}
	return &solver{path: path, folder: folder, limit: limit}, func() { _ = os.RemoveAll(folder) }, nil
}

// exactly solves the instance level after level. It is not complete when a level took
// longer than the time limit.
func (s *solver) exactly(ctx context.Context, in Instance) (replicas [][]int, complete bool, err error) {
	p := newProgram(in)
	left, complete := s.limit, true
	for level := 0; level <= len(p.priorities); level++ {
		began := time.Now()
		values, optimal, err := s.run(ctx, p.text(level), left)
		if err != nil {
			return nil, false, fmt.Errorf("%s, level %d: %w", in.Name, level+1, err)
		}
		if left -= time.Since(began); left < time.Second {
			left = time.Second
		}
		complete = complete && optimal
		if values != nil || replicas == nil {
			replicas = p.replicas(values)
		}
		if level < len(p.priorities) {
			p.hold = append(p.hold, in.score(replicas).Levels[level])
		}
	}
	return replicas, complete, nil
}

// run solves one program; a variable that is not in values is 0.
func (s *solver) run(ctx context.Context, text string, limit time.Duration) (values map[string]float64, optimal bool, err error) {
	problem, solution := filepath.Join(s.folder, "problem.lp"), filepath.Join(s.folder, "solution.txt")
	if err := os.WriteFile(problem, []byte(text), 0o600); err != nil {
		return nil, false, fmt.Errorf("write the program: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, 2*limit+time.Minute)
	defer cancel()
	seconds := strconv.FormatFloat(limit.Seconds(), 'f', 1, 64)
	out, err := exec.CommandContext(ctx, s.path, problem, "-timeMode", "elapsed", "-sec", seconds, "-ratio", "0", "-allow", "1e-7", "-integerT", "1e-7", "-primalT", "1e-8", "-solve", "-solution", solution).CombinedOutput()
	if err != nil {
		return nil, false, fmt.Errorf("run cbc: %w: %s", err, tail(string(out)))
	}
	answer, err := os.ReadFile(solution)
	if err != nil {
		return nil, false, fmt.Errorf("read the solution: %w: %s", err, tail(string(out)))
	}
	return parse(string(answer))
}

func tail(text string) string { return text[max(0, len(text)-300):] }

// parse reads CBC's solution: a line with the status, then one with number, name,
// value and reduced cost of each variable.
func parse(text string) (values map[string]float64, optimal bool, err error) {
	lines := bufio.NewScanner(strings.NewReader(text))
	if !lines.Scan() {
		return nil, false, errors.New("cbc wrote an empty solution")
	}
	status := lines.Text()
	optimal = strings.HasPrefix(status, "Optimal")
	if strings.Contains(status, "nfeasible") || strings.Contains(status, "no integer solution") {
		// The answer of the level before keeps all that is held; that CBC does not find
		// it is a matter of its time or its tolerances.
		return nil, false, nil
	}
	if !optimal && !strings.HasPrefix(status, "Stopped on time") {
		return nil, false, fmt.Errorf("cbc says %q", status)
	}
	values = map[string]float64{}
	for lines.Scan() {
		fields := strings.Fields(strings.TrimPrefix(strings.TrimSpace(lines.Text()), "**"))
		if len(fields) < 3 {
			continue
		}
		value, err := strconv.ParseFloat(fields[2], 64)
		if err != nil {
			return nil, false, fmt.Errorf("cbc wrote the line %q", lines.Text())
		}
		values[fields[1]] = value
	}
	return values, optimal, lines.Err()
}

// program writes the levels of an instance as integer programs. Of option j of model
// i, k_i_j are the replicas that exist and stay, and n_i_j those that are started;
// y_i_b is the served part, 0 to 1, of a band of the demand.
type program struct {
	in         Instance
	priorities []int
	// hold are the levels that were solved.
	hold []float64
}

func newProgram(in Instance) *program { return &program{in: in, priorities: in.priorities()} }

func (p *program) text(level int) string {
	var b strings.Builder
	b.WriteString("Minimize\n obj:")
	if level < len(p.priorities) {
		// What is served, negative: the unserved part is one less.
		p.served(&b, level, -1)
	} else {
		p.cost(&b)
	}
	b.WriteString("\nSubject To\n")
	for at, held := range p.hold {
		fmt.Fprintf(&b, " level%d:", at)
		whole := p.served(&b, at, 1)
		fmt.Fprintf(&b, " >= %.12g\n", whole-held-fixed)
	}
	p.demands(&b)
	p.rows(&b)
	p.bounds(&b)
	return b.String()
}

// served writes the priced served demand of a priority and returns what it is when all
// is served; 0 means that there is no demand and nothing was written.
func (p *program) served(b *strings.Builder, level int, sign float64) (whole float64) {
	priority := p.priorities[level]
	heaviest, unit := p.in.heaviest(priority), p.in.unit(priority)
	for i, m := range p.in.Models {
		d := demandOf(m, heaviest)
		if m.Priority != priority || d.rest == 0 {
			continue
		}
		for k := range bands {
			part := d.price[k] * d.width / unit
			fmt.Fprintf(b, " %+.12g y_%d_%d\n", sign*part, i, k)
			whole += part
		}
	}
	if whole == 0 {
		b.WriteString(" 0 unused")
	}
	return whole
}

func (p *program) cost(b *strings.Builder) {
	for i, m := range p.in.Models {
		for j, o := range m.Options {
			fmt.Fprintf(b, " %+.12g k_%d_%d %+.12g n_%d_%d\n", float64(o.Cost), i, j, float64(o.Cost+o.Start), i, j)
		}
	}
}

// demands bounds what is served by what the replicas can, and the totals of options.
func (p *program) demands(b *strings.Builder) {
	for i, m := range p.in.Models {
		d := demandOf(m, 1)
		if d.rest > 0 {
			fmt.Fprintf(b, " serve_%d:", i)
			least := 0.0
			for j, o := range m.Options {
				fmt.Fprintf(b, " %+.12g k_%d_%d %+.12g n_%d_%d\n", float64(o.Serves)/d.width, i, j, float64(o.Serves)/d.width, i, j)
				least += float64(o.Serves) * float64(o.Least)
			}
			for k := range bands {
				fmt.Fprintf(b, " - y_%d_%d", i, k)
			}
			fmt.Fprintf(b, " >= %.12g\n", least/d.width)
		}
		for j, o := range m.Options {
			fmt.Fprintf(b, " least_%d_%d: k_%d_%d + n_%d_%d >= %d\n", i, j, i, j, i, j, o.Least)
			if o.Most >= 0 {
				fmt.Fprintf(b, " most_%d_%d: k_%d_%d + n_%d_%d <= %d\n", i, j, i, j, i, j, o.Most)
			}
		}
	}
}

func (p *program) rows(b *strings.Builder) {
	for row, limit := range p.in.Rows {
		var sum strings.Builder
		for i, m := range p.in.Models {
			for j, o := range m.Options {
				for _, u := range o.Uses {
					if u.Row == row {
						fmt.Fprintf(&sum, " %+.12g n_%d_%d\n", u.Amount, i, j)
					}
				}
			}
		}
		if sum.Len() > 0 {
			fmt.Fprintf(b, " row_%d:%s <= %.12g\n", row, sum.String(), limit)
		}
	}
}

func (p *program) bounds(b *strings.Builder) {
	var whole strings.Builder
	b.WriteString("Bounds\n 0 <= unused <= 0\n")
	for i, m := range p.in.Models {
		if demandOf(m, 1).rest > 0 {
			for k := range bands {
				fmt.Fprintf(b, " 0 <= y_%d_%d <= 1\n", i, k)
			}
		}
		for j, o := range m.Options {
			fmt.Fprintf(b, " 0 <= k_%d_%d <= %d\n", i, j, o.Now)
			most := 100_000
			if o.Serves > 0 {
				most = max(o.Least, int(float64(m.Need)/float64(o.Serves))+1)
			}
			fmt.Fprintf(b, " 0 <= n_%d_%d <= %d\n", i, j, most)
			fmt.Fprintf(&whole, " k_%d_%d n_%d_%d\n", i, j, i, j)
		}
	}
	b.WriteString("Integers\n" + whole.String() + "End\n")
}

func (p *program) replicas(values map[string]float64) [][]int {
	all := make([][]int, len(p.in.Models))
	for i, m := range p.in.Models {
		for j := range m.Options {
			k, n := values[fmt.Sprintf("k_%d_%d", i, j)], values[fmt.Sprintf("n_%d_%d", i, j)]
			all[i] = append(all[i], int(math.Round(k))+int(math.Round(n)))
		}
	}
	return all
}
