// Package output is the form in which a command answers: a table for people, JSON or YAML
// for programs. It decides nothing about what is shown. Read Form.
package output
