package harness

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// ErrMissed ends a run that went through and did not meet its figures. Which ones is told
// already.
var ErrMissed = errors.New("not every figure is met: the lines above name those that are not")

// Call is one call of a benchmark.
type Call struct {
	Args []string
	// Out is for what was measured, Log for how far it is and for what was wrong.
	Out, Log io.Writer
}

// Tell prints for people. That nobody may listen is no failure of the benchmark.
func (c *Call) Tell(format string, values ...any) { _, _ = fmt.Fprintf(c.Out, format, values...) }

// Flags are those of a benchmark. One of them, --out, names the file for the numbers.
type Flags struct {
	*flag.FlagSet
	call *Call
	file *string
}

// Flags begins the flags of the benchmark of that name.
func (c *Call) Flags(name string) *Flags {
	set := flag.NewFlagSet(name, flag.ContinueOnError)
	set.SetOutput(c.Log)
	return &Flags{set, c, set.String("out", "bench-"+name+".json", "where the numbers go; empty for nowhere")}
}

// Parse reads the call's arguments, which are flags alone. Whether the file for the numbers
// can be written shows here, before the work.
func (f *Flags) Parse() error {
	if err := f.FlagSet.Parse(f.call.Args); err != nil {
		return err
	}
	if f.NArg() > 0 {
		return fmt.Errorf("what is %q? There are flags only", f.Arg(0))
	}
	if *f.file == "" {
		return nil
	}
	_, missing := os.Stat(*f.file)
	file, err := os.OpenFile(*f.file, os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("open the file for the results: %w", err)
	}
	if missing != nil {
		// A call that fails leaves no empty file.
		return errors.Join(file.Close(), os.Remove(*f.file))
	}
	return file.Close()
}

// Save writes the numbers as JSON.
func (f *Flags) Save(numbers any) error {
	if *f.file == "" {
		return nil
	}
	text, err := json.MarshalIndent(numbers, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the results: %w", err)
	}
	if err := os.WriteFile(*f.file, append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("write the results: %w", err)
	}
	return nil
}

// NoData is the error of a call that does not say where the data lie.
func NoData(holds string) error {
	return fmt.Errorf("say where the data is: --data FOLDER (holds %s)", holds)
}

// Within finds a file or folder that a flag names: as it is, or within the data.
func Within(data, path string) string {
	if _, err := os.Stat(path); err != nil && data != "" && !filepath.IsAbs(path) {
		return filepath.Join(data, path)
	}
	return path
}
