package prometheus

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"golang.org/x/oauth2"

	settings "llmd.ai/workload-variant-autoscaler/pkg/config"
)

// cause is why a query got no answer, and what to do where that is known. It has neither the
// address that was asked nor what is secret of what another program answered. Its words are the
// same each time.
func cause(err error) error {
	if failed := (*url.Error)(nil); errors.As(err, &failed) {
		return settings.StableError(failed.Err)
	}
	// So the decoder ends its errors, which quote what it read.
	if strings.Contains(err.Error(), ", error found in #") {
		return errors.New(foreign)
	}
	var answer *v1.Error
	if errors.As(err, &answer) {
		return errors.New(words(err.Error(), nil))
	}
	return err
}

const foreign = "the answer is not one of Prometheus: its address may lead to another program, or to a page to log in"

// refusal is an answer that is no answer of Prometheus to a query.
type refusal struct {
	status int
	// words are what it says to a person.
	words string
	// at is the server of tokens that answered so; empty for Prometheus itself, or who stands before it.
	at string
	// problem is why the file of the login, as it is now, is not what was used; nil where it is.
	problem error
}

// Error implements error.
func (r *refusal) Error() string {
	text := foreign
	if r.status/100 != 2 {
		text = fmt.Sprintf("HTTP status %d %s", r.status, http.StatusText(r.status))
		if r.at == "" {
			text += advice(r.status)
		}
	}
	if r.at != "" {
		text = "logging in at " + r.at + ": " + text
	}
	if r.words != "" {
		text += "; it says: " + r.words
	}
	if r.problem != nil {
		text += "; " + r.problem.Error()
	}
	return text
}

func advice(status int) string {
	switch {
	case status == http.StatusNotFound:
		return ": its address must be the part before /api/v1"
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return ": look at the login and what it permits"
	case status/100 == 3:
		return ": a redirect is not followed, because it could carry the login elsewhere; give the address where it leads"
	}
	return ""
}

// answers are those of Prometheus. Others, and those that VictoriaMetrics says to be a part, which the
// client has no field for, are errors. Others yet tell a part by warnings.
type answers struct {
	login  *followed
	limits limits
}

// What VictoriaMetrics is told with each query (app/vmselect/prometheus, 1.151). Prometheus, Thanos and Mimir
// take no notice of it.
const (
	// newestParameter has it not leave out what is younger than its -search.latencyOffset, 30
	// seconds: a step would be seen that much later, and the times of scrapes would be those of older ones.
	newestParameter = "latency_offset"
	// wholeParameter has it reckon all steps of a subquery together. Those of more than five minutes ago it else
	// has from its cache, and of the others alone it may not see how far scrapes lie apart: a series that is
	// scraped seldom is then missing a few seconds after each scrape.
	wholeParameter = "nocache"
)

// newestToo asks for all that is known.
type newestToo struct{ http.RoundTripper }

func (n newestToo) RoundTrip(request *http.Request) (*http.Response, error) {
	asked := request.Clone(request.Context())
	values := asked.URL.Query()
	values.Set(newestParameter, "1ms")
	values.Set(wholeParameter, "1")
	asked.URL.RawQuery = values.Encode()
	return n.RoundTripper.RoundTrip(asked)
}

// headSize is more than what stands before the data, in bytes.
const headSize = 512

var partSaid = regexp.MustCompile(`"isPartial"\s*:\s*true`)

// RoundTrip implements http.RoundTripper.
func (a answers) RoundTrip(request *http.Request) (*http.Response, error) {
	now, problem := a.login.access()
	response, err := boundedAnswers{newestToo{now.transport}, a.limits}.RoundTrip(request)
	if err != nil {
		return nil, now.failure(err, problem)
	}
	body := bufio.NewReaderSize(response.Body, headSize)
	head, _ := body.Peek(headSize)
	object := bytes.HasPrefix(bytes.TrimSpace(head), []byte("{"))
	switch {
	case partSaid.Match(head):
		_ = response.Body.Close()
		return nil, errors.New("the answer is only a part: some of its stores did not answer")
	case response.StatusCode/100 == 2 && object, otherMethod(response):
		response.Body = readCloser{body, response.Body}
		return response, nil
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(body, longestPage))
	if err != nil && len(text) == 0 {
		return nil, err
	}
	said := words(string(text), now.secrets(response))
	if queryRefused(response.StatusCode, text) {
		response.Body = io.NopCloser(bytes.NewReader(refusedQuery(text, said)))
		return response, nil
	}
	return nil, &refusal{status: response.StatusCode, words: said, problem: problem}
}

// otherMethod reports whether the client asks again in another way.
func otherMethod(r *http.Response) bool {
	return (r.StatusCode == http.StatusMethodNotAllowed || r.StatusCode == http.StatusNotImplemented) && r.Request != nil && r.Request.Method == http.MethodPost
}

// queryRefused reports whether it is Prometheus that says what is wrong with a query.
func queryRefused(status int, text []byte) bool {
	var said struct{ Status string }
	return (status == http.StatusBadRequest || status == http.StatusUnprocessableEntity) && json.Unmarshal(text, &said) == nil && said.Status == "error"
}

// refusedQuery is the answer of Prometheus with its words as they may be told.
func refusedQuery(text []byte, said string) []byte {
	var object map[string]any
	_ = json.Unmarshal(text, &object)
	again, _ := json.Marshal(map[string]any{"status": "error", "errorType": object["errorType"], "error": said})
	return again
}

// failure is why a request got no answer.
func (c *access) failure(err, problem error) error {
	var token *oauth2.RetrieveError
	if errors.As(err, &token) && token.Response != nil {
		return &refusal{status: token.Response.StatusCode, words: words(string(token.Body), c.secrets(nil)), at: settings.Location(c.config.OAuth2.TokenURL), problem: problem}
	}
	if unreached := (*url.Error)(nil); errors.As(err, &unreached) && c.config.OAuth2 != nil {
		err = fmt.Errorf("logging in at %s: %w", settings.Location(c.config.OAuth2.TokenURL), unreached.Err)
	}
	if problem != nil {
		return fmt.Errorf("%w; %w", err, problem)
	}
	return err
}

type readCloser struct {
	io.Reader
	io.Closer
}
