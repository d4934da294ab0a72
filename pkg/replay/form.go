package replay

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Form is how the value of a setting is written.
type Form struct {
	// expected says it to people.
	expected string
	// one reads a value and gives it back in the one spelling that all equal ones have;
	// false where it is none.
	one func(string) (string, bool)
	// each is set where there may be one value for each model.
	each bool
}

// between separates the values of several models.
const between = "+"

// read checks a value and spells it in the one way.
func (f Form) read(value string) (string, error) {
	parts := []string{value}
	if f.each {
		parts = strings.Split(value, between)
	}
	for i, part := range parts {
		canonical, ok := f.one(part)
		if !ok {
			return "", errors.New("expected " + f.expected)
		}
		parts[i] = canonical
	}
	return strings.Join(parts, between), nil
}

// OfEach lets the form have a value for each model.
func (f Form) OfEach() Form {
	f.each = true
	return f
}

// mostTarget bounds the numbers that anybody may mean.
const mostTarget = 1e12

// orZero is a lower bound that lets a number be 0.
const orZero = -math.SmallestNonzeroFloat64

// NumberOf is a number above one bound and up to another.
func NumberOf(above, most float64, expected string) Form {
	return Form{expected: expected, one: func(text string) (string, bool) {
		value, err := strconv.ParseFloat(text, 64)
		// A negative zero is a zero.
		return number(value + 0), err == nil && value > above && value <= most
	}}
}

// CountOf is a whole number, in digits alone.
func CountOf(least, most int, expected string) Form {
	return Form{expected: expected, one: func(text string) (string, bool) {
		n, err := strconv.Atoi(text)
		return text, err == nil && n >= least && n <= most && strconv.Itoa(n) == text
	}}
}

// SpanOf is a time in whole seconds, with its unit.
func SpanOf(least, most time.Duration, expected string) Form {
	return Form{expected: expected, one: func(text string) (string, bool) {
		d, err := time.ParseDuration(text)
		return inSeconds(d), err == nil && d >= least && d <= most && d%time.Second == 0
	}}
}

// OneOf is one of some words.
func OneOf(words ...string) Form {
	return Form{expected: alternatives(words), one: func(text string) (string, bool) {
		return text, slices.Contains(words, text)
	}}
}

// splitOf are numbers of replicas by the names of variants.
func splitOf(expected string) Form {
	return Form{expected: expected, each: true, one: func(text string) (string, bool) {
		name, count, _ := strings.Cut(text, ":")
		n, err := strconv.Atoi(count)
		return text, name != "" && err == nil && n >= 0 && n <= MostReplicas && strconv.Itoa(n) == count
	}}
}

// textOf is any text that needs no quotes.
func textOf(expected string) Form {
	return Form{expected: expected, one: func(text string) (string, bool) {
		return text, text != "" && !strings.ContainsAny(text, "= \t")
	}}
}

// nameOf is a name.
func nameOf(expected string) Form {
	return Form{expected: expected, one: func(text string) (string, bool) {
		return text, text != "" && !strings.ContainsAny(text, ":= \t")
	}}
}

// number has as many digits as it takes to read the same value again; an infinite one is
// none.
func number(value float64) string {
	if math.IsInf(value, 0) {
		return "none"
	}
	return strconv.FormatFloat(value, 'f', -1, 64)
}

// inSeconds is a time in seconds.
func inSeconds(d time.Duration) string { return strconv.Itoa(int(d/time.Second)) + "s" }
