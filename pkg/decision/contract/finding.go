package contract

import "slices"

// Finding is what a step found: which sentence of a closed set says it, and what stands in it.
// Package report/sentence renders it. The zero Finding says nothing. Several plans may share one, so
// that it never changes.
type Finding struct{ *said }

// said is a sentence with what stands in it. Findings point to it, as most are held by several steps.
type said struct {
	says Sentence
	with []any
}

// plain are the sentences in which nothing stands.
var plain = func() (all [Sentences]said) {
	for s := range all {
		all[s].says = Sentence(s)
	}
	return all
}()

// Sentence is one of a closed set of sentences.
type Sentence int

// Share is a part of something as a share of it, 0 to 1.
type Share float64

// With is the sentence with what stands in it.
//
// What stands in it is of the types that the comment of the sentence names: int, float64, string,
// []string, bool, time.Duration, time.Time, the units of package capacity, Share, Bucket, Stage and
// Finding. Nobody may write to it any more.
func (s Sentence) With(what ...any) Finding {
	if len(what) == 0 {
		return Finding{&plain[s]}
	}
	return Finding{&said{s, what}}
}

// Says is the sentence.
func (f Finding) Says() Sentence {
	if f.said == nil {
		return SaysNothing
	}
	return f.says
}

// Args are what stands in it.
func (f Finding) Args() []any {
	if f.said == nil {
		return nil
	}
	return f.with
}

// None reports whether it says nothing.
func (f Finding) None() bool { return f.Says() == SaysNothing }

// Equal reports whether both say the same.
func (f Finding) Equal(o Finding) bool {
	return f.said == o.said || f.Says() == o.Says() && slices.EqualFunc(f.Args(), o.Args(), same)
}

// same reports whether two things that stand in sentences are equal.
func same(a, b any) bool {
	switch a := a.(type) {
	case Finding:
		b, is := b.(Finding)
		return is && a.Equal(b)
	case []string:
		b, is := b.([]string)
		return is && slices.Equal(a, b)
	}
	return a == b
}

// Words is what somebody says in words of their own: what the decision cannot know.
func Words(text string) Finding {
	if text == "" {
		return Finding{}
	}
	return SaysWords.With(text)
}

// Clauses says one after the other; what says nothing is left out.
func Clauses(all ...Finding) Finding { return several(SaysClauses, all) }

// Because says the first and why it is so; nothing more where there is no reason.
func Because(what, why Finding) Finding { return several(SaysBecause, []Finding{what, why}) }

// And is a message with one more clause, which is told where it says more and leaves it short.
func (f Finding) And(clause Finding) Finding {
	if f.Says() != SaysMessage {
		return several(SaysMessage, []Finding{f, clause})
	}
	return SaysMessage.With(append(slices.Clone(f.with), clause)...)
}

// several is a sentence of all that say something; of one it is that.
func several(says Sentence, all []Finding) Finding {
	told, last := 0, Finding{}
	for _, f := range all {
		if !f.None() {
			told, last = told+1, f
		}
	}
	if told <= 1 {
		return last
	}
	with := make([]any, 0, told)
	for _, f := range all {
		if !f.None() {
			with = append(with, f)
		}
	}
	return says.With(with...)
}
