package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
)

func main() {
	if err := run(os.Args[1:], os.Stdout, os.Stderr); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "packing:", err)
		}
		os.Exit(1)
	}
}

// The study's own list and number of seeds: there its figures are held against ours.
const (
	defaultList = "openb_pod_list_default.csv"
	studySeeds  = 10
)

var errMissed = errors.New("the replay is not what the study's figures ask for")

type options struct {
	data, list, derived, out string
	seeds, first             uint64
}

func parseOptions(args []string, stderr io.Writer) (*options, error) {
	o := &options{}
	flags := flag.NewFlagSet("packing", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.data, "data", "", "folder of the openb trace")
	flags.StringVar(&o.list, "list", "", "list of pods to replay instead of the folder's default list")
	flags.StringVar(&o.derived, "derive", "", "replay a list derived from the list: multi50, share100, spec33, cpu250 and others")
	flags.StringVar(&o.out, "out", "bench-packing.json", "where the results go")
	flags.Uint64Var(&o.seeds, "seeds", 10, "number of seeds")
	flags.Uint64Var(&o.first, "first", 1, "the first seed")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	switch {
	case flags.NArg() > 0:
		return nil, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case o.data == "":
		return nil, errors.New("no data: name the folder of the openb trace, --data DIR")
	case o.seeds == 0:
		return nil, errors.New("--seeds must be at least 1")
	}
	if inner := filepath.Join(o.data, "openb"); exists(inner) {
		o.data = inner
	}
	if o.list == "" {
		o.list = filepath.Join(o.data, defaultList)
	}
	return o, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func run(args []string, stdout, stderr io.Writer) error {
	o, err := parseOptions(args, stderr)
	if err != nil {
		return err
	}
	study, err := o.study()
	if err != nil {
		return err
	}
	var seeds []uint64
	for i := range o.seeds {
		seeds = append(seeds, o.first+i)
	}
	curves := replayAll(study, seeds, progress(stderr, len(policies)*len(seeds)))
	name := strings.TrimSuffix(filepath.Base(o.list), ".csv")
	if o.derived != "" {
		name += "+" + o.derived
	}
	if err := o.save(resultsOf(name, seeds, curves)); err != nil {
		return err
	}
	if err := writeTable(stdout, name, curves); err != nil {
		return err
	}
	keeping, refusing := limits(study.Classes)
	if _, err := fmt.Fprintf(stdout, "the devices alone allow at 100 %%: %.2f without refusing what fits, %.2f with the future known\n", 100*keeping, 100*refusing); err != nil {
		return fmt.Errorf("writing the limits: %w", err)
	}
	if o.derived != "" || filepath.Base(o.list) != defaultList || o.seeds < studySeeds {
		return nil
	}
	text, good := verify(curves)
	if _, err := io.WriteString(stdout, text); err != nil {
		return fmt.Errorf("writing the check: %w", err)
	}
	if !good {
		return errMissed
	}
	return nil
}

// study reads the lists.
func (o *options) study() (*Study, error) {
	nodes, err := readFile(filepath.Join(o.data, "openb_node_list_gpu_node.csv"), parseNodes)
	if err != nil {
		return nil, err
	}
	pods, err := readFile(o.list, parsePods)
	if err != nil {
		return nil, err
	}
	if o.derived != "" {
		if pods, err = derive(o.derived, nodes, pods); err != nil {
			return nil, err
		}
	}
	return newStudy(nodes, pods)
}

func (o *options) save(results []Result) error {
	file, err := os.Create(o.out)
	if err != nil {
		return fmt.Errorf("writing the results: %w", err)
	}
	return errors.Join(writeResults(file, results), file.Close())
}

// progress is called after each replay and counts them where a person watches.
func progress(stderr io.Writer, all int) func() {
	file, ok := stderr.(*os.File)
	if !ok {
		return func() {}
	}
	info, err := file.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return func() {}
	}
	count := atomic.Int64{}
	return func() {
		if n := count.Add(1); n < int64(all) {
			_, _ = fmt.Fprintf(file, "\r%d of %d replays", n, all)
		} else {
			_, _ = fmt.Fprint(file, "\r\033[K")
		}
	}
}
