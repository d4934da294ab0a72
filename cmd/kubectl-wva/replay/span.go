package replay

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/report"
)

// span is a flag that takes a number of seconds or a duration.
type span time.Duration

// String implements pflag.Value. The help does not show a default of "0".
func (s *span) String() string {
	if *s == 0 {
		return "0"
	}
	return report.Duration(time.Duration(*s))
}

// Type implements pflag.Value.
func (s *span) Type() string { return "duration" }

// Set implements pflag.Value.
func (s *span) Set(text string) error {
	d, err := parseSpan(text)
	*s = span(d)
	return err
}

// number is a flag that takes a number.
type number float64

// String implements pflag.Value.
func (n *number) String() string { return strconv.FormatFloat(float64(*n), 'g', -1, 64) }

// Type implements pflag.Value.
func (n *number) Type() string { return "number" }

// Set implements pflag.Value.
func (n *number) Set(text string) error {
	value, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return errors.New("expected a number")
	}
	*n = number(value)
	return nil
}

// spans is a flag that takes several of them.
type spans []time.Duration

// String implements pflag.Value.
func (s *spans) String() string {
	texts := make([]string, len(*s))
	for i, d := range *s {
		texts[i] = report.Duration(d)
	}
	return strings.Join(texts, ",")
}

// Type implements pflag.Value.
func (s *spans) Type() string { return "durations" }

// Set implements pflag.Value.
func (s *spans) Set(text string) error {
	var all []time.Duration
	for part := range strings.SplitSeq(text, ",") {
		d, err := parseSpan(strings.TrimSpace(part))
		if err != nil {
			return err
		}
		all = append(all, d)
	}
	*s = all
	return nil
}

func parseSpan(text string) (time.Duration, error) {
	if n, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(n) * time.Second, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, errors.New("expected a number of seconds, or a duration such as 90s or 10m")
	}
	return d, nil
}
