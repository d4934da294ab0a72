// Package sentence says in English what a decision found. A plan carries contract.Finding: which
// sentence says it, and what stands in it. Of renders one, and nothing else does, so that status,
// events, logs, pages and commands say the same.
//
// It decides nothing and knows no plan. It may not import package decision, whose tests use it.
//
// Read contract.Finding and contract.Sentence first, then the table in forms.go.
package sentence
