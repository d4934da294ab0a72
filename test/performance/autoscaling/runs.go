package autoscaling

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/replay"
	"llmd.ai/workload-variant-autoscaler/test/performance/sweep"
)

// runs is a file of runs that were made: its first line says of what, and each other line
// is one run.
type runs struct {
	known []sweep.Kept

	mutex sync.Mutex
	file  *os.File
	err   error
}

// madeOf is what the runs of a file are of. With another commit or other data they would
// end in another way.
type madeOf struct {
	Commit string `json:"commit"`
	Data   string `json:"data"`
}

// dirty ends the name of a commit with changes on top, as git describe tells it.
const dirty = "-dirty"

// openRuns reads the file that the flags name, and goes on writing it; without one nothing
// is kept. A last line that was not written to its end is written again.
func openRuns(o *options) (*runs, error) {
	r := new(runs)
	if o.rivals != "" {
		if err := r.takeRivals(o); err != nil {
			return nil, fmt.Errorf("%s: %w", o.rivals, err)
		}
	}
	if o.runs == "" {
		return r, nil
	}
	if strings.HasSuffix(o.commit, dirty) {
		return nil, fmt.Errorf("%s: the runs would be of %s, and no later run can tell what that was: commit the changes first", o.runs, o.commit)
	}
	file, err := os.OpenFile(o.runs, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open the file of runs: %w", err)
	}
	if err := r.read(file, madeOf{o.commit, o.data}); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", o.runs, err), file.Close())
	}
	r.file = file
	return r, nil
}

// takeRivals takes over the rivals' runs of another commit, whose rules and servers are
// taken to be the same. Ours would end in another way, and are left.
func (r *runs) takeRivals(o *options) error {
	file, err := os.Open(o.rivals)
	if err != nil {
		return err
	}
	then, all, _, err := parse(file)
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	if then.Data != o.data {
		return fmt.Errorf("its runs are of data %q, and these would be of %q: name another file", then.Data, o.data)
	}
	for _, one := range all {
		if replay.KindOf(one.Policy) != replay.KindOurs {
			r.known = append(r.known, one)
		}
	}
	return nil
}

// read takes over all whole lines, and leaves the file where the next one begins.
func (r *runs) read(file *os.File, now madeOf) error {
	then, all, end, err := parse(file)
	if err != nil {
		return err
	}
	if end > 0 && then != now {
		return fmt.Errorf("its runs are of commit %q and data %q, and these would be of %q and %q: name another file, or take over only the rivals' runs with --rivals", then.Commit, then.Data, now.Commit, now.Data)
	}
	r.known = append(r.known, all...)
	if err := file.Truncate(end); err != nil {
		return err
	}
	if _, err := file.Seek(end, io.SeekStart); err != nil {
		return err
	}
	if end > 0 {
		return nil
	}
	return json.NewEncoder(file).Encode(now)
}

// parse reads all whole lines, and says where the next one begins.
func parse(file io.Reader) (of madeOf, all []sweep.Kept, end int64, err error) {
	lines := bufio.NewReader(file)
	for number := 1; ; number++ {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return of, all, end, nil
		}
		if err != nil {
			return of, nil, 0, err
		}
		if number == 1 {
			if err := json.Unmarshal(line, &of); err != nil {
				return of, nil, 0, fmt.Errorf("line 1 is not that of a file of runs: %w", err)
			}
		} else {
			var one sweep.Kept
			if err := json.Unmarshal(line, &one); err != nil {
				return of, nil, 0, fmt.Errorf("line %d is no run: %w", number, err)
			}
			all = append(all, one)
		}
		end += int64(len(line))
	}
}

// made is the result of a run that went to its end; nil where there is none.
func (r *runs) made(of string, startup time.Duration, seed int, policy string) *replay.Result {
	for i := range r.known {
		if k := &r.known[i]; k.Case == of && k.Startup == startup && k.Seed == seed && k.Policy == policy && k.Limit == (replay.Limit{}) && k.Result != nil {
			return k.Result
		}
	}
	return nil
}

// keep notes one run; nil where nothing is kept.
func (r *runs) keep() func(sweep.Kept) {
	if r.file == nil {
		return nil
	}
	return func(one sweep.Kept) {
		r.mutex.Lock()
		defer r.mutex.Unlock()
		if err := json.NewEncoder(r.file).Encode(one); err != nil && r.err == nil {
			r.err = fmt.Errorf("note a run: %w", err)
		}
	}
}

// close says what went wrong in between, too.
func (r *runs) close() error {
	if r.file == nil {
		return nil
	}
	return errors.Join(r.err, r.file.Close())
}
