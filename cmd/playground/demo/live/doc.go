// Package live serves a page of package report while what it shows goes on.
//
// It answers on a loopback address only, and only requests that name a loopback host, so
// that no foreign web page can read it through a host name of its own. It answers GET and HEAD;
// nothing can be changed through it. Read Server first.
package live
