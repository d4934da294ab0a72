// Package conditiontest waits in tests for what a running cluster comes to. It decides
// nothing and is imported by tests alone.
package conditiontest
