package migrate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/cluster"
	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/migration"
)

// The files of a backup.
const (
	// fileBefore has the objects as they were, fileMade those that were to be made, and
	// fileDefinition the CRD.
	fileBefore     = "before.yaml"
	fileMade       = "made.yaml"
	fileDefinition = "crd.yaml"
)

// change is what becomes of the cluster.
type change struct {
	api client.Client
	out io.Writer
	// backup is the folder of the backup.
	backup string
	// dry lets the API server check everything and change nothing.
	dry bool
	// undone are what --apply made, by kind and key; nil but on the way back.
	undone map[string]*migration.Document
}

// apply writes a backup, makes the objects, and deletes those that they replace.
func (c *change) apply(ctx context.Context, converted *migration.Conversion) error {
	made := converted.Made()
	if len(made) == 0 {
		_, err := fmt.Fprintln(c.out, "nothing is of an earlier form: nothing changes")
		return err
	}
	d, err := readDefinition(ctx, c.api)
	if err != nil {
		return err
	}
	if d.present() {
		if err := c.refuseOthers(ctx, converted.Replaced, keysOf(made)); err != nil {
			return err
		}
		if made, err = c.withoutServing(ctx, made); err != nil {
			return err
		}
		if err := c.rehearse(ctx, made, converted.Replaced); err != nil {
			return err
		}
	}
	if !c.dry {
		if err := c.writeBackup(ctx, d, converted.Replaced, made); err != nil {
			return err
		}
	}
	if !d.present() {
		if c.dry {
			return errors.New("the cluster's CRD is of the earlier form and cannot hold the present one: install the present CRD first, with the chart; what is there now --apply keeps in a backup before")
		}
		return fmt.Errorf("the cluster's CRD is of the earlier form and cannot hold the present one, so nothing was changed: install the present CRD with the chart, "+
			"and then run %q", "kubectl wva migrate --apply -f "+filepath.Join(c.backup, fileBefore))
	}
	return c.write(ctx, made, converted.Replaced)
}

// keysOf tells which objects are among documents.
func keysOf(documents []migration.Document) map[string]bool {
	keys := map[string]bool{}
	for i := range documents {
		keys[documents[i].Kind+" "+documents[i].Key()] = true
	}
	return keys
}

// byKey are documents by kind and key.
func byKey(documents []migration.Document) map[string]*migration.Document {
	all := map[string]*migration.Document{}
	for i := range documents {
		all[documents[i].Kind+" "+documents[i].Key()] = &documents[i]
	}
	return all
}

// write makes the objects, and then deletes those of the others that are not among them.
func (c *change) write(ctx context.Context, wanted, others []migration.Document) error {
	stays := keysOf(wanted)
	for i := range wanted {
		if err := c.put(ctx, &wanted[i]); err != nil {
			return err
		}
	}
	for i := range others {
		if old := &others[i]; !stays[old.Kind+" "+old.Key()] {
			if err := c.remove(ctx, old); err != nil {
				return err
			}
		}
	}
	return nil
}

// rehearse asks the API server for every write without making it: one that is refused, for want of a
// permission or by an admission webhook, would leave half of the others done.
func (c *change) rehearse(ctx context.Context, wanted, others []migration.Document) error {
	if c.dry {
		return nil
	}
	rehearsal := *c
	rehearsal.dry, rehearsal.out = true, io.Discard
	if err := rehearsal.write(ctx, wanted, others); err != nil {
		return fmt.Errorf("%w; nothing was changed", err)
	}
	return nil
}

// withoutServing are the documents without the Deployments that are there: a skeleton has no
// replicas, and those of one that was made before may serve.
func (c *change) withoutServing(ctx context.Context, made []migration.Document) (kept []migration.Document, err error) {
	for i := range made {
		d := &made[i]
		if d.Kind == kindDeployment {
			switch _, err := c.get(ctx, d); {
			case err == nil:
				if err := c.say("there already", d); err != nil {
					return nil, err
				}
				continue
			case !apierrors.IsNotFound(err):
				return nil, failed("reading", d, err)
			}
		}
		kept = append(kept, *d)
	}
	return kept, nil
}

// kindDeployment is what --deployments makes.
const kindDeployment = "Deployment"

// refuseOthers ends the change before it deletes an object that only has the name of one in
// the files: somebody made it since, in the present form, and no backup has it.
func (c *change) refuseOthers(ctx context.Context, replaced []migration.Document, stays map[string]bool) error {
	for i := range replaced {
		old := &replaced[i]
		if old.Kind != v1alpha1.Kind || stays[old.Kind+" "+old.Key()] {
			continue
		}
		live, err := c.get(ctx, old)
		if apierrors.IsNotFound(err) {
			continue
		} else if err != nil {
			return failed("reading", old, err)
		}
		_, refers, _ := unstructured.NestedFieldNoCopy(live.Object, "spec", "scaleTargetRef")
		if _, referred, _ := unstructured.NestedFieldNoCopy(old.Object, "spec", "scaleTargetRef"); refers && !referred {
			return fmt.Errorf("%s %s in the cluster is not the one in %s: it is of the present form, and would be deleted; nothing was changed: "+
				"leave the object out of the file, or delete the one in the cluster", old.Kind, old.Key(), old.File)
		}
	}
	return nil
}

// writeBackup writes what the change may touch. A folder that is there is another backup.
func (c *change) writeBackup(ctx context.Context, d *definition, replaced, made []migration.Document) error {
	if err := os.Mkdir(c.backup, 0o750); err != nil {
		return fmt.Errorf("making the folder of the backup: %w; --backup names another one", err)
	}
	before, written := append([]migration.Document{}, replaced...), byKey(made)
	for i := range before {
		// It may have changed since the file was written.
		was, ok, err := c.live(ctx, &before[i])
		switch {
		case err != nil:
			return err
		case ok && before[i].Kind == v1alpha1.Kind:
			// The present CRD no longer shows all of its spec.
			if before[i], err = beside(&before[i], written[before[i].Kind+" "+before[i].Key()], &unstructured.Unstructured{Object: was.Object}); err != nil {
				return err
			}
		case ok:
			before[i] = was
		}
	}
	has := keysOf(before)
	for i := range made {
		m := &made[i]
		if has[m.Kind+" "+m.Key()] {
			continue
		}
		if was, ok, err := c.live(ctx, m); err != nil {
			return err
		} else if ok {
			before = append(before, was)
		}
	}
	definitionText, err := liveDocument(d.object.DeepCopy().Object)
	if err != nil {
		return err
	}
	for file, documents := range map[string][]migration.Document{fileBefore: before, fileMade: made, fileDefinition: {definitionText}} {
		text, err := join(documents)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(c.backup, file), text, 0o600); err != nil {
			return fmt.Errorf("writing the backup: %w", err)
		}
	}
	_, err = fmt.Fprintf(c.out, "backup: %s (undo with: kubectl wva migrate --rollback %s)\n", c.backup, c.backup)
	return err
}

func join(documents []migration.Document) ([]byte, error) {
	texts := make([][]byte, 0, len(documents))
	for i := range documents {
		text, err := documents[i].YAML()
		if err != nil {
			return nil, err
		}
		texts = append(texts, text)
	}
	return bytes.Join(texts, []byte("---\n")), nil
}

// rollback puts back what a backup holds, and deletes what was made beside it.
func (c *change) rollback(ctx context.Context) error {
	before, err := readFiles([]string{filepath.Join(c.backup, fileBefore)}, nil)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s is no backup, because it has no file %s: give --rollback the folder that --apply named", c.backup, fileBefore)
	} else if err != nil {
		return err
	}
	made, err := readFiles([]string{filepath.Join(c.backup, fileMade)}, nil)
	if err != nil {
		return err
	}
	d, err := readDefinition(ctx, c.api)
	if err != nil {
		return err
	}
	for i := range before {
		if b := &before[i]; b.Kind == v1alpha1.Kind && migration.IsEarlier(b.Object) && !d.earlier() {
			return fmt.Errorf("the cluster's CRD would drop the fields of VariantAutoscaling %s, so nothing was changed: put the CRD of the earlier version back first "+
				"(%s holds the one that was there when --apply was run)", b.Key(), filepath.Join(c.backup, fileDefinition))
		}
	}
	if err := c.refuseServing(ctx, made); err != nil {
		return err
	}
	c.undone = byKey(made)
	if err := c.rehearse(ctx, before, made); err != nil {
		return err
	}
	return c.write(ctx, before, made)
}

// refuseServing ends the way back before it deletes a Deployment with replicas: they may be all that
// serves by now.
func (c *change) refuseServing(ctx context.Context, made []migration.Document) error {
	for i := range made {
		m := &made[i]
		if m.Kind != kindDeployment {
			continue
		}
		live, err := c.get(ctx, m)
		if apierrors.IsNotFound(err) {
			continue
		} else if err != nil {
			return failed("reading", m, err)
		}
		if replicas, _, _ := unstructured.NestedInt64(live.Object, "spec", "replicas"); replicas > 0 {
			return fmt.Errorf("%s %s has %d replicas and would be deleted, so nothing was changed: let the Deployment of before serve, and scale this one to 0 first", m.Kind, m.Key(), replicas)
		}
	}
	return nil
}

// live is the document of an object as the cluster has it; not ok when it is not there.
func (c *change) live(ctx context.Context, d *migration.Document) (was migration.Document, ok bool, err error) {
	object, err := c.get(ctx, d)
	if apierrors.IsNotFound(err) {
		return was, false, nil
	} else if err != nil {
		return was, false, failed("reading", d, err)
	}
	was, err = liveDocument(object.Object)
	return was, err == nil, err
}

// get is an object as the cluster has it.
func (c *change) get(ctx context.Context, d *migration.Document) (*unstructured.Unstructured, error) {
	live := &unstructured.Unstructured{}
	version, _ := d.Object["apiVersion"].(string)
	live.SetAPIVersion(version)
	live.SetKind(d.Kind)
	return live, c.api.Get(ctx, client.ObjectKey{Namespace: d.Namespace, Name: d.Name}, live)
}

// put makes an object, or changes the one that is there to it: what users write of it.
func (c *change) put(ctx context.Context, d *migration.Document) error {
	copied, err := migration.Clone(d.Object)
	if err != nil {
		return err
	}
	wanted := &unstructured.Unstructured{Object: copied}
	delete(copied, "status")
	for _, field := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "ownerReferences"} {
		unstructured.RemoveNestedField(copied, "metadata", field)
	}
	owners := c.ownersFor(ctx, d)
	wanted.SetOwnerReferences(owners)
	live, err := c.get(ctx, d)
	if apierrors.IsNotFound(err) {
		if err := c.api.Create(ctx, wanted, c.createOptions()...); err != nil {
			return failed("creating", d, err)
		}
		return c.say("created", d)
	}
	if err != nil {
		return failed("reading", d, err)
	}
	was := live.DeepCopy()
	live.Object["spec"] = wanted.Object["spec"]
	live.SetLabels(c.labelsFor(live, d))
	live.SetOwnerReferences(owners)
	if equality.Semantic.DeepEqual(was, live) {
		return c.say("unchanged", d)
	}
	if err := c.api.Update(ctx, live, c.updateOptions()...); err != nil {
		return failed("changing", d, err)
	}
	// The answer has the defaults that a file leaves out; that of a dry run has no new version.
	if equality.Semantic.DeepEqual(was.Object["spec"], live.Object["spec"]) && maps.Equal(was.GetLabels(), live.GetLabels()) {
		return c.say("unchanged", d)
	}
	return c.say("changed", d)
}

func (c *change) remove(ctx context.Context, d *migration.Document) error {
	live, err := c.get(ctx, d)
	if err == nil {
		var options []client.DeleteOption
		if c.dry {
			options = append(options, client.DryRunAll)
		}
		err = c.api.Delete(ctx, live, options...)
	}
	if apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		return failed("deleting", d, err)
	}
	return c.say("deleted", d)
}

func (c *change) createOptions() (options []client.CreateOption) {
	if c.dry {
		options = append(options, client.DryRunAll)
	}
	return options
}

func (c *change) updateOptions() (options []client.UpdateOption) {
	if c.dry {
		options = append(options, client.DryRunAll)
	}
	return options
}

func failed(doing string, d *migration.Document, err error) error {
	if apimeta.IsNoMatchError(err) {
		return fmt.Errorf("%s %s %s: the cluster does not know that kind: install what brings it, or leave the object out", doing, d.Kind, d.Key())
	}
	verb := map[string]string{"creating": "create", "reading": "get", "changing": "update", "deleting": "delete"}[doing]
	return fmt.Errorf("%s %s %s: %w", doing, d.Kind, d.Key(), cluster.Advise(err, verb, strings.ToLower(d.Kind)+"s", d.Namespace))
}

// say tells of one change.
func (c *change) say(what string, d *migration.Document) error {
	if c.dry && what != "unchanged" && what != "there already" {
		what += " (dry run)"
	}
	_, err := fmt.Fprintf(c.out, "%s: %s %s\n", what, d.Kind, d.Key())
	return err
}

// decode reads an object that was written.
func decode(text []byte) (any, error) {
	var object any
	return object, yaml.Unmarshal(text, &object)
}
