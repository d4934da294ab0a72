package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	served "llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/capacity"
	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/output"
	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/replay/past"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/replay"
	"llmd.ai/workload-variant-autoscaler/pkg/report"
	"llmd.ai/workload-variant-autoscaler/pkg/workload"
)

// usualLast is how far back is looked when nobody says it.
const usualLast = 24 * time.Hour

// lookback is what the command line says of a past that is replayed.
type lookback struct {
	address, tokenFile, caFile string
	model                      string
	last                       time.Duration
	written                    string

	// past is nil where none is replayed.
	past    *past.Past
	servers servers
	// file is where the trace is written.
	file *page
	// now is the time of the clock.
	now func() time.Time
}

func (o *options) addLookback(command *cobra.Command) {
	f := command.Flags()
	f.StringVar(&o.address, "from-prometheus", "", "Replay the past of a model: the address of a Prometheus that scrapes its servers, such as http://localhost:9090. Nodes and variants are those of the live cluster, or with --scenario those of the scenario.")
	f.StringVar(&o.model, "model", "", "With --from-prometheus: name by which clients ask for the model, as in the label model_name.")
	f.Var((*span)(&o.last), "last", "With --from-prometheus: how far back to look.")
	f.StringVar(&o.written, "write-trace", "", "With --from-prometheus: file that the trace is written to (CSV), for replays without Prometheus; without it one in this folder, named after the model and the time.")
	f.StringVar(&o.tokenFile, "prometheus-token-file", "", "With --from-prometheus: file with a bearer token for it.")
	f.StringVar(&o.caFile, "prometheus-ca-file", "", "With --from-prometheus: file with the certificate of the CA of Prometheus.")
}

// looksBack says whether the past of a model is replayed.
func (o *options) looksBack() bool { return o.address != "" }

// checkLookback looks at the flags alone.
func (o *options) checkLookback(command *cobra.Command) error {
	if !o.looksBack() {
		for _, name := range []string{"model", "last", "write-trace", "prometheus-token-file", "prometheus-ca-file"} {
			if command.Flags().Changed(name) {
				return fmt.Errorf("--%s goes with --from-prometheus only: expected both or none", name)
			}
		}
		if command.Flags().Changed("from-prometheus") {
			return errors.New("--from-prometheus is empty: expected an address such as http://localhost:9090")
		}
		return nil
	}
	if o.trace != "" {
		return errors.New("--trace and --from-prometheus are both given: expected one of them")
	}
	// Who names no scenario means what runs.
	o.fromCluster = o.fromCluster || o.scenario == ""
	return o.pastOptions().Check()
}

func (o *options) pastOptions() past.Options {
	return past.Options{Address: o.address, TokenFile: o.tokenFile, CAFile: o.caFile, Model: o.model, Last: o.last, Now: o.now()}
}

// lookBack reads the past.
func (o *options) lookBack(ctx context.Context) error {
	from := o.pastOptions()
	if o.fromCluster {
		namespace, err := o.live.Namespace()
		if err != nil {
			return err
		}
		from.Namespace = namespace
	}
	var err error
	if o.past, err = past.Read(ctx, from); err != nil {
		return err
	}
	if o.written == "" {
		o.written = traceName(o.model, o.past.From)
	}
	if o.file, err = checkPage(o.written); err != nil {
		return fmt.Errorf("--write-trace: %w", err)
	}
	return nil
}

// traceName is that of the file where nobody says it: llama-8b-20261122T1400Z.csv.
func traceName(model string, from time.Time) string {
	name := strings.Map(func(r rune) rune {
		if strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-", r) {
			return r
		}
		return '-'
	}, path.Base(model))
	return fmt.Sprintf("%s-%s.csv", strings.TrimLeft(name, ".-"), from.UTC().Format("20060102T1504Z"))
}

// writeTrace writes the requests of the past, and has the replay read them.
func (o *options) writeTrace(notes io.Writer) error {
	stream, err := o.past.Stream(o.seed)
	if err != nil {
		return err
	}
	var sum workload.Summary
	err = o.file.write(func(w io.Writer) (err error) {
		sum, err = workload.WritePlain(w, stream)
		return err
	})
	if err != nil {
		return err
	}
	for _, note := range o.past.Notes {
		output.Note(notes, note)
	}
	_, _ = fmt.Fprintf(notes, "note: the requests of %s from %s on are in %s: %s\n", o.model, o.past.From.UTC().Format(time.RFC3339), o.written, sum)
	o.trace = o.written
	return nil
}

// fillProfiles keeps the model of the past alone, and gives its variants without a profile
// one.
func (o *options) fillProfiles(s *replay.Scenario, notes io.Writer) error {
	ids := make([]string, len(s.Models))
	for i := range s.Models {
		ids[i] = s.Models[i].ID
	}
	if !slices.Contains(ids, o.model) {
		return fmt.Errorf("--model is %q: expected a model of the scenario (%s)", o.model, strings.Join(ids, ", "))
	}
	s.Models = slices.DeleteFunc(s.Models, func(m replay.Model) bool { return m.ID != o.model })
	if len(s.Models) > 1 {
		return fmt.Errorf("--model is %q, which %d namespaces have: expected one of them (--namespace)", o.model, len(s.Models))
	}
	if len(ids) > 1 {
		_, _ = fmt.Fprintf(notes, "note: the scenario has %d models, and %s alone is replayed\n", len(ids), o.model)
	}
	m := &s.Models[0]
	// Its own requests are those of the past.
	m.Traffic = nil
	found := o.past.Profiles(o.servers.without(m))
	var missing []string
	for i := range m.Variants {
		v := &m.Variants[i]
		if v.Profile.Known() {
			continue
		}
		f, ok := found[v.Name]
		if !ok {
			missing = append(missing, v.Name)
			continue
		}
		v.Profile, v.Given = f.Profile, f.Profile
		_, _ = fmt.Fprintf(notes, "note: the profile of variant %s is %s\n", v.Name, f.Source)
	}
	if len(missing) > 0 {
		return fmt.Errorf("no latency profile is known of %s: its replicas left no metrics in the last %s, and there are no published figures of %s on its devices; expected spec.variantProfile in the objects, or a scenario file with a model of that id and variants of these names, each with a profile",
			strings.Join(missing, ", "), report.Duration(o.last), o.model)
	}
	return nil
}

// servers are the targets of live variants by the names of these.
type servers map[string]server

type server struct {
	target    string
	arguments serving.Arguments
}

// addServer notes the target of a live variant and the arguments of its model server.
func (o *lookback) addServer(v *served.ServedVariant) {
	if o.past == nil {
		return
	}
	found := server{target: v.Object.Spec.ScaleTargetRef.Name}
	if v.Template != nil {
		for i := range v.Template.Spec.Containers {
			c := &v.Template.Spec.Containers[i]
			if arguments := serving.ParseArguments(slices.Concat(c.Command, c.Args)); arguments.Model != "" || len(v.Template.Spec.Containers) == 1 {
				found.arguments = arguments
				break
			}
		}
	}
	o.servers[v.Object.Name] = found
}

// without are the variants of a model that have no profile, and those with one that others
// may borrow from. A pod is of the variant with the longest target name that its own begins
// with; of a model with one variant all are.
func (s servers) without(m *replay.Model) []past.Variant {
	targets := make([]string, len(m.Variants))
	for i := range m.Variants {
		targets[i] = m.Variants[i].Name
		if known, ok := s[m.Variants[i].Name]; ok {
			targets[i] = known.target
		}
	}
	var all []past.Variant
	for i := range m.Variants {
		v := &m.Variants[i]
		if v.Profile.Known() {
			continue
		}
		all = append(all, past.Variant{Name: v.Name, Shape: v.Request.Shape, Arguments: s[v.Name].arguments, Owns: func(pod string) bool {
			return len(m.Variants) == 1 || ownerOf(pod, targets) == i
		}})
	}
	return all
}

// ownerOf is the index of the longest name that a pod's own name begins with; -1 without one.
func ownerOf(pod string, targets []string) int {
	best := -1
	for i, name := range targets {
		if strings.HasPrefix(pod, name+"-") && (best < 0 || len(name) > len(targets[best])) {
			best = i
		}
	}
	return best
}
