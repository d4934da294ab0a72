package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// listName is where a package keeps its survivors, below its folder.
const listName = "testdata/survivors.txt"

// readList returns the survivors that the package at the folder lists, those of one file
// where a file is named, each with its reason. A package without a list has none.
func readList(folder, file string) (map[identity]string, error) {
	name := filepath.Join(filepath.FromSlash(folder), listName)
	data, err := os.ReadFile(name)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the list of survivors: %w", err)
	}
	all, err := parseList(string(data))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	for i := range all {
		if file != "" && i.file != file {
			delete(all, i)
		}
	}
	return all, nil
}

func parseList(text string) (map[identity]string, error) {
	reasons := map[identity]string{}
	var open []identity // whose reason is still to come, or is being read
	reading := false
	for n, line := range strings.Split(text, "\n") {
		trimmed := strings.TrimSpace(line)
		switch {
		case trimmed == "" || strings.HasPrefix(trimmed, "#"):
		case line != strings.TrimLeft(line, " \t"):
			if len(open) == 0 {
				return nil, fmt.Errorf("line %d: a reason without a change above it", n+1)
			}
			for _, i := range open {
				reasons[i] = strings.TrimSpace(reasons[i] + " " + trimmed)
			}
			reading = true
		default:
			i, err := parseIdentity(line)
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", n+1, err)
			}
			if _, twice := reasons[i]; twice {
				return nil, fmt.Errorf("line %d: the change is listed twice", n+1)
			}
			if reading {
				open, reading = nil, false
			}
			open = append(open, i)
			reasons[i] = ""
		}
	}
	if len(open) > 0 && !reading {
		return nil, fmt.Errorf("%s: no reason: write below it, indented, why nobody can see the change", open[len(open)-1])
	}
	return reasons, nil
}

func parseIdentity(line string) (identity, error) {
	place, code, found := strings.Cut(line, ": ")
	fields := strings.Fields(place)
	if !found || len(fields) != 3 || !strings.Contains(code, "@") {
		return identity{}, fmt.Errorf("%q: want FILE FUNCTION KIND: LINE, with @ before the changed operator", line)
	}
	return identity{file: fields[0], function: fields[1], kind: fields[2], code: strings.TrimSpace(code)}, nil
}
