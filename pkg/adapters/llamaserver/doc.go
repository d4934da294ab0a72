// Package llamaserver asks a running Llama Stack server which providers it has and which
// version it is, over HTTP.
//
// It decides nothing: an answer that does not come within its time, or cannot be read, is
// an error. Read Client first.
package llamaserver
