package output

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/yaml"

	"llmd.ai/workload-variant-autoscaler/pkg/report"
)

// The forms that most commands have.
const (
	Table = "table"
	JSON  = "json"
	YAML  = "yaml"
)

// Form is the value of --output.
type Form struct {
	value string
	forms []string
}

// Add adds -o to a command. The first form is the default.
func (f *Form) Add(command *cobra.Command, forms ...string) {
	f.value, f.forms = forms[0], forms
	command.Flags().VarP(f, "output", "o", "Form of the output: "+strings.Join(forms, ", ")+".")
	_ = command.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(slices.Clone(forms), cobra.ShellCompDirectiveNoFileComp))
}

// String implements pflag.Value.
func (f *Form) String() string { return f.value }

// Type implements pflag.Value.
func (f *Form) Type() string { return "form" }

// Set implements pflag.Value.
func (f *Form) Set(text string) error {
	if !slices.Contains(f.forms, text) {
		return fmt.Errorf("expected one of %s", strings.Join(f.forms, ", "))
	}
	f.value = text
	return nil
}

// ForPrograms reports whether the answer is for programs, and so is to be written by Write.
func (f *Form) ForPrograms() bool { return f.value == JSON || f.value == YAML }

// Write writes a value as JSON or YAML.
func (f *Form) Write(out io.Writer, value any) error {
	text, err := f.Marshal(value)
	if err != nil {
		return err
	}
	_, err = Plain(out).Write(text)
	return err
}

// Marshal is a value as JSON or YAML.
func (f *Form) Marshal(value any) ([]byte, error) {
	if f.value == YAML {
		return yaml.Marshal(value)
	}
	text, err := json.MarshalIndent(value, "", "  ")
	return append(text, '\n'), err
}

// Rows writes a table: the header, if there is one, and the rows in columns that are as wide as what is in
// them. An empty cell is shown as "-": it is unknown.
func Rows(out io.Writer, header []string, rows [][]string) error {
	writer := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if header != nil {
		if _, err := fmt.Fprintln(writer, strings.Join(header, "\t")); err != nil {
			return err
		}
	}
	for _, row := range rows {
		cells := slices.Clone(row)
		for i, cell := range cells {
			cells[i] = Cell(cell)
		}
		if _, err := fmt.Fprintln(writer, strings.Join(cells, "\t")); err != nil {
			return err
		}
	}
	return writer.Flush()
}

// Cell is a text as a cell of a table: on one line, and "-" where it is empty.
func Cell(text string) string {
	if text == "" {
		return "-"
	}
	return report.Printable(text)
}

// Number is a number as a cell; empty while it is unknown.
func Number(n *int32) string {
	if n == nil {
		return ""
	}
	return fmt.Sprint(*n)
}

// Ago is how long ago something was, as kubectl writes it; empty for never.
func Ago(then, now time.Time) string {
	if then.IsZero() {
		return ""
	}
	return duration.HumanDuration(now.Sub(then))
}
