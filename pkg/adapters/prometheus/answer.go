package prometheus

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"

	settings "llmd.ai/workload-variant-autoscaler/pkg/config"
)

// cause is why a query got no answer, and what to do where that is known. It has neither the
// address that was asked nor what another program answered: both may hold a secret. Its words are the
// same each time.
func cause(err error) error {
	if failed := (*url.Error)(nil); errors.As(err, &failed) {
		return settings.Steady(failed.Err)
	}
	var answer *v1.Error
	if errors.As(err, &answer) {
		if status := statusOf(answer.Msg); status != 0 {
			return fmt.Errorf("HTTP status %d %s%s", status, http.StatusText(status), advice(status))
		}
	}
	// So the decoder ends its errors, which quote what it read.
	if strings.Contains(err.Error(), ", error found in #") {
		return errors.New("the answer is not one of Prometheus: its address may lead to another program, or to a page to log in")
	}
	return err
}

// statusOf is the status at the end of what the client says of an answer without an error of
// Prometheus' own; 0 of anything else.
func statusOf(message string) int {
	for _, words := range []string{"client error: ", "server error: ", "bad response code "} {
		if code, ok := strings.CutPrefix(message, words); ok {
			status, _ := strconv.Atoi(code)
			return status
		}
	}
	return 0
}

func advice(status int) string {
	switch {
	case status == http.StatusNotFound:
		return ": its address must be the part before /api/v1"
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return ": look at the token and what it permits"
	case status/100 == 3:
		return ": a redirect is not followed, because it could carry the token elsewhere; give the address where it leads"
	}
	return ""
}

// wholeAnswers refuses an answer that VictoriaMetrics says to be a part, which the client has no
// field for. Others tell it by warnings.
type wholeAnswers struct{ http.RoundTripper }

// newestParameter tells VictoriaMetrics not to leave out what is younger than its
// -search.latencyOffset, 30 seconds (app/vmselect/prometheus, 1.151): a step would be seen that
// much later, and the times of scrapes would be those of older ones. Prometheus, Thanos and Mimir
// take no notice of it.
const newestParameter = "latency_offset"

// newestToo asks for all that is known.
type newestToo struct{ http.RoundTripper }

func (n newestToo) RoundTrip(request *http.Request) (*http.Response, error) {
	asked := request.Clone(request.Context())
	values := asked.URL.Query()
	values.Set(newestParameter, "1ms")
	asked.URL.RawQuery = values.Encode()
	return n.RoundTripper.RoundTrip(asked)
}

// headSize is more than what it writes before the data, in bytes.
const headSize = 512

var partSaid = regexp.MustCompile(`"isPartial"\s*:\s*true`)

func (w wholeAnswers) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := w.RoundTripper.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	body := bufio.NewReaderSize(response.Body, headSize)
	if head, _ := body.Peek(headSize); partSaid.Match(head) {
		_ = response.Body.Close()
		return nil, errors.New("the answer is only a part: some of its stores did not answer")
	}
	response.Body = readCloser{body, response.Body}
	return response, nil
}

type readCloser struct {
	io.Reader
	io.Closer
}
