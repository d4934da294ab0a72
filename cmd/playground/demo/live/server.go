package live

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/report"
)

// Source makes the state that is shown now.
type Source func() report.Feed

// Server serves a page on a loopback address.
type Server struct {
	server   *http.Server
	listener net.Listener
	done     chan error
}

// Listen begins to serve a page at a port of 127.0.0.1; port 0 is a free one. The source is
// asked when somebody looks, and at most once in an interval.
func Listen(ctx context.Context, port int, every time.Duration, source Source) (*Server, error) {
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("serving the page at %s: %w", address, err)
	}
	s := &Server{
		server:   &http.Server{Handler: NewHandler(every, source), ReadHeaderTimeout: 10 * time.Second},
		listener: listener,
		done:     make(chan error, 1),
	}
	go func() {
		err := s.server.Serve(listener)
		if errors.Is(err, http.ErrServerClosed) {
			err = nil
		}
		s.done <- err
	}()
	return s, nil
}

// URL is the address of the page.
func (s *Server) URL() string { return "http://" + s.listener.Addr().String() + "/" }

// Failed gets what ended the server; nil after Close.
func (s *Server) Failed() <-chan error { return s.done }

// Close ends the server and the answers that are under way.
func (s *Server) Close() error {
	if err := s.server.Close(); err != nil {
		return fmt.Errorf("ending the server of the page: %w", err)
	}
	return nil
}

// handler answers with the page, and with the states that follow.
type handler struct {
	every  time.Duration
	source Source
	now    func() time.Time

	mu    sync.Mutex
	made  time.Time
	feed  report.Feed
	state []byte
	tag   string
}

// NewHandler serves the page at "/" and its state at "/state.json".
func NewHandler(every time.Duration, source Source) http.Handler {
	h := &handler{every: every, source: source, now: time.Now}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", h.page)
	mux.HandleFunc("GET /state.json", h.data)
	return h.guarded(mux)
}

// guarded lets only requests through that name a loopback host. A name that somebody else
// has pointed to this machine is refused.
func (h *handler) guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Cache-Control", "no-store")
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("X-Frame-Options", "DENY")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		header.Set("Cross-Origin-Opener-Policy", "same-origin")
		if !loopback(r.Host) {
			http.Error(w, fmt.Sprintf("this page is served to loopback hosts only; open it as http://localhost, not as %q", r.Host), http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// loopback reports whether a Host header names this machine: localhost, or an address of
// the loopback network, with any port, since a tunnel changes it.
func loopback(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.TrimSuffix(strings.TrimPrefix(name, "["), "]")
	if strings.EqualFold(name, "localhost") {
		return true
	}
	address, err := netip.ParseAddr(name)
	return err == nil && address.Unmap().IsLoopback()
}

// latest makes a new state when the last one is old.
func (h *handler) latest() (feed report.Feed, state []byte, tag string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	// A page that asks every interval never sees the same state twice.
	if now := h.now(); h.state == nil || now.Sub(h.made) >= h.every/2 {
		feed := h.source()
		state, err := json.Marshal(feed)
		if err != nil {
			return feed, nil, "", fmt.Errorf("writing the state: %w", err)
		}
		sum := sha256.Sum256(state)
		h.made, h.feed, h.state, h.tag = now, feed, state, `"`+hex.EncodeToString(sum[:16])+`"`
	}
	return h.feed, h.state, h.tag, nil
}

func (h *handler) page(w http.ResponseWriter, _ *http.Request) {
	feed, _, _, err := h.latest()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	hash, err := feed.ScriptHash()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	var body bytes.Buffer
	if err := feed.WriteHTML(&body); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	// The charts set colours by the attribute style, which a hash cannot allow.
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; script-src "+hash+
		"; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(body.Bytes())
}

func (h *handler) data(w http.ResponseWriter, r *http.Request) {
	_, state, tag, err := h.latest()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("ETag", tag)
	if r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(state)
}
