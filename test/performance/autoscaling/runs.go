package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/replay/sweep"
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

// openRuns reads the file that the flags name, and goes on writing it; without one nothing
// is kept. A last line that was not written to its end is written again.
func openRuns(o *options) (*runs, error) {
	r := new(runs)
	if o.runs == "" {
		return r, nil
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

// read takes over all whole lines, and leaves the file where the next one begins.
func (r *runs) read(file *os.File, now madeOf) error {
	lines, end := bufio.NewReader(file), int64(0)
	for number := 1; ; number++ {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if number == 1 {
			var then madeOf
			if err := json.Unmarshal(line, &then); err != nil {
				return fmt.Errorf("line 1 is not that of a file of runs: %w", err)
			}
			if then != now {
				return fmt.Errorf("its runs are of commit %q and data %q, and these would be of %q and %q: name another file", then.Commit, then.Data, now.Commit, now.Data)
			}
		} else {
			var one sweep.Kept
			if err := json.Unmarshal(line, &one); err != nil {
				return fmt.Errorf("line %d is no run: %w", number, err)
			}
			r.known = append(r.known, one)
		}
		end += int64(len(line))
	}
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
