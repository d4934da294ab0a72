package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "ablation:", err)
		os.Exit(1)
	}
}

// parse reads the flags.
func parse(arguments []string, log io.Writer) (b *bench, chosen []*rule, err error) {
	b = &bench{}
	flags := flag.NewFlagSet("ablation", flag.ContinueOnError)
	flags.SetOutput(log)
	names := flags.String("rule", "", "names of rules, with commas between them; without it all")
	flags.IntVar(&b.scenarios, "seeds", 600, "how many scenarios of the closed loop are played")
	flags.IntVar(&b.replayed, "replays", 2, "with how many seeds each load is replayed")
	flags.StringVar(&b.data, "data", "", "folder that holds azure2023: replay recorded loads, too")
	flags.StringVar(&b.root, "root", ".", "root of the repository")
	flags.IntVar(&b.workers, "workers", runtime.NumCPU(), "replays at the same time")
	if err := flags.Parse(arguments); err != nil {
		return nil, nil, err
	}
	if b.scenarios < 1 || b.replayed < 1 || b.workers < 1 {
		return nil, nil, errors.New("--seeds, --replays and --workers must be at least 1")
	}
	b.loads = loads(b.data)
	if chosen, err = named(*names); err != nil {
		return nil, nil, err
	}
	return b, chosen, nil
}

// named are the rules of these names, or all.
func named(names string) (chosen []*rule, err error) {
	var known []string
	for i := range rules {
		known = append(known, rules[i].name)
		if names == "" || slices.Contains(strings.Split(names, ","), rules[i].name) {
			chosen = append(chosen, &rules[i])
		}
	}
	for name := range strings.SplitSeq(names, ",") {
		if name != "" && !slices.Contains(known, name) {
			return nil, fmt.Errorf("there is no rule %q; there are: %s", name, strings.Join(known, ", "))
		}
	}
	return chosen, nil
}

func run(ctx context.Context, arguments []string, out, log io.Writer) error {
	b, chosen, err := parse(arguments, log)
	if err != nil {
		return err
	}
	// The Go tool needs whole paths to put a file in place of another.
	if b.root, err = filepath.Abs(b.root); err != nil {
		return err
	}
	began := time.Now()
	tell := func(format string, values ...any) { _, _ = fmt.Fprintf(log, format+"\n", values...) }
	tell("%d rules, each on %d loads with %d seeds and on %d scenarios", len(chosen), len(b.loads), b.replayed, b.scenarios)
	with, err := b.measure(ctx, nil)
	if err != nil {
		return err
	}
	var verdicts []verdict
	for i, r := range chosen {
		without, err := b.measure(ctx, r)
		if err != nil {
			return fmt.Errorf("without %s: %w", r.name, err)
		}
		v := b.judge(r, without, with)
		verdicts = append(verdicts, v)
		tell("%d of %d, %s: without %s: cost %s, met %s, fails: %s; most on %s", i+1, len(chosen), time.Since(began).Round(time.Second),
			r.name, v.cost.said("%"), v.met.said(""), v.failed(), v.most)
	}
	return write(out, verdicts)
}
