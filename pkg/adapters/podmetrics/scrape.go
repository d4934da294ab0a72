package podmetrics

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	settings "llmd.ai/workload-variant-autoscaler/pkg/config"
)

// accepted asks for the text format that parse reads.
const accepted = "text/plain;version=0.0.4;q=1,*/*;q=0.1"

// scrape asks one address for its metrics. The host, unless empty, is the name by
// which the server knows itself.
func (v vocabulary) scrape(ctx context.Context, client *http.Client, address *url.URL, host string) (exposition, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("asking %s: %w", settings.Location(address.String()), err)
	}
	request.Header.Set("Accept", accepted)
	if host != "" {
		request.Host = host
	}
	response, err := client.Do(request)
	if err != nil {
		var failed *url.Error
		if errors.As(err, &failed) { // which would name the address once more
			err = failed.Err
		}
		return nil, fmt.Errorf("asking %s: %w", settings.Location(address.String()), settings.StableError(err))
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		_, _ = io.CopyN(io.Discard, response.Body, 4<<10)
		return nil, fmt.Errorf("asking %s: the answer is %s%s", settings.Location(address.String()), response.Status, sentTo(response))
	}
	body := &lastByte{Reader: response.Body}
	found, err := v.parse(body)
	if err == nil && body.last != '\n' && unbounded(response) {
		err = errors.New("the page ends within a line: its server may have ended while it answered")
	}
	if err != nil {
		return nil, fmt.Errorf("asking %s: %w", settings.Location(address.String()), settings.StableError(err))
	}
	return found, nil
}

// lastByte remembers the last byte that was read.
type lastByte struct {
	io.Reader
	last byte
}

func (l *lastByte) Read(b []byte) (int, error) {
	n, err := l.Reader.Read(b)
	if n > 0 {
		l.last = b[n-1]
	}
	return n, err
}

// unbounded says whether nothing but the end of the connection tells where the body ends, so that
// one that was cut looks like a whole one.
func unbounded(r *http.Response) bool {
	return r.ContentLength < 0 && len(r.TransferEncoding) == 0 && r.ProtoMajor == 1
}

// mostRedirects is how often one page may send on to another.
const mostRedirects = 3

// nextDoor follows a redirect to another page of the same address, as some servers send /metrics
// on to /metrics/, and no other, which could carry the token elsewhere.
func nextDoor(to *http.Request, via []*http.Request) error {
	first := via[0].URL
	if to.URL.Scheme != first.Scheme || to.URL.Host != first.Host || len(via) > mostRedirects {
		return http.ErrUseLastResponse
	}
	return nil
}

// sentTo says where a redirect leads that was not followed; empty for any other answer.
func sentTo(r *http.Response) string {
	to, err := r.Location()
	if err != nil || r.StatusCode/100 != 3 {
		return ""
	}
	return fmt.Sprintf(": it sends to %s, and only another page of the same address is followed, %d times at most", settings.Location(to.String()), mostRedirects)
}
