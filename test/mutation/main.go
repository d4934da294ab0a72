package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
)

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdout); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "mutation:", err)
		}
		os.Exit(1)
	}
}

type options struct {
	gremlins string
	folder   string
	// file is the only file of the folder that is changed, or empty for all.
	file string
	// sample is that one change in so many is tried.
	sample int
}

func parseOptions(arguments []string) (*options, error) {
	o := &options{}
	flags := flag.NewFlagSet("mutation", flag.ContinueOnError)
	flags.StringVar(&o.gremlins, "gremlins", "", "the program gremlins")
	pkg := flags.String("pkg", "", "the package whose code is changed, or one file of it, from the root of the module")
	flags.IntVar(&o.sample, "sample", 1, "try one change in so many")
	if err := flags.Parse(arguments); err != nil {
		return nil, err
	}
	switch {
	case flags.NArg() > 0:
		return nil, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case *pkg == "":
		return nil, errors.New("no package: name one, as in make mutate PKG=pkg/capacity/placement")
	case o.sample < 1:
		return nil, fmt.Errorf("--sample %d: want 1 or more", o.sample)
	case o.gremlins == "":
		return nil, errors.New("no --gremlins")
	}
	o.folder = path.Clean(*pkg)
	if strings.HasSuffix(o.folder, ".go") {
		o.folder, o.file = path.Split(o.folder)
		o.folder = path.Clean(o.folder)
	}
	info, err := os.Stat(filepath.FromSlash(path.Join(o.folder, o.file)))
	if err != nil {
		return nil, fmt.Errorf("--pkg: %w", err)
	}
	if info.IsDir() != (o.file == "") {
		return nil, fmt.Errorf("--pkg %s: want the folder of a package, or a file of one", *pkg)
	}
	return o, nil
}

func run(ctx context.Context, arguments []string, out io.Writer) error {
	o, err := parseOptions(arguments)
	if err != nil {
		return err
	}
	listed, err := readList(o.folder, o.file)
	if err != nil {
		return err
	}
	mutants, err := unleash(ctx, o, out)
	if err != nil {
		return err
	}
	j := judge(mutants, listed)
	if o.sample > 1 {
		j.gone = nil // what was not tried may live
	}
	if err := j.write(out); err != nil {
		return fmt.Errorf("print the result: %w", err)
	}
	return j.err()
}
