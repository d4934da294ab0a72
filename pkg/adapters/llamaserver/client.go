package llamaserver

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/v1alpha2"
)

const (
	// timeout bounds one question.
	timeout = 5 * time.Second
	// largest bounds an answer, in bytes.
	largest = 256 << 10
	// largestHeader bounds what comes before it, in bytes.
	largestHeader = 16 << 10
)

// Client asks servers, and nobody else: it follows no redirect and knows no proxy, because
// a server, which a tenant runs, must not choose whom the operator asks.
type Client struct{ http http.Client }

// New is a client. With an address, host:port, every connection goes there in place of the host of
// its URL: that is for programs on a network that does not know Services by their names.
func New(address string) *Client {
	dialer := &net.Dialer{Timeout: timeout}
	return &Client{http.Client{
		Transport: &http.Transport{ // without Proxy: not even that of the environment
			DialContext: func(ctx context.Context, network, to string) (net.Conn, error) {
				return dialer.DialContext(ctx, network, cmp.Or(address, to))
			},
			// A server is asked each few minutes.
			DisableKeepAlives:      true,
			MaxResponseHeaderBytes: largestHeader,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Providers are the providers that the server at the URL has, with how they are.
func (c *Client) Providers(ctx context.Context, url string) ([]v1alpha2.ProviderInfo, error) {
	var answer struct {
		Data []v1alpha2.ProviderInfo `json:"data"`
	}
	err := c.get(ctx, url+"/v1/providers", &answer)
	for i := range answer.Data {
		answer.Data[i].Config.Raw = shown(answer.Data[i].Config.Raw)
	}
	return answer.Data, err
}

// secretWords are in the names of settings that may hold a secret. A number is one where
// its name ends in such a word: the server makes numbers of digits, and max_tokens is none.
var secretWords = []string{"key", "password", "secret", "token"}

// hidden stands for a secret.
const hidden = "********"

// passwordInURL is the password of an address, with what is around it.
var passwordInURL = regexp.MustCompile(`(://[^/:@\s]*:)[^/@\s]+@`)

// shown is a configuration for everybody who may read an object: no secret, whatever the
// server shows, and an object even where there are no settings.
func shown(raw []byte) []byte {
	var config map[string]any
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	if decoder.Decode(&config) != nil || config == nil {
		return []byte("{}")
	}
	text, err := json.Marshal(withoutSecrets("", config))
	if err != nil {
		return []byte("{}")
	}
	return text
}

// withoutSecrets is the value of a setting of that name. An item of a list has its name.
func withoutSecrets(name string, value any) any {
	name = strings.ToLower(name)
	switch value := value.(type) {
	case map[string]any:
		for key := range value {
			value[key] = withoutSecrets(key, value[key])
		}
	case []any:
		for i := range value {
			value[i] = withoutSecrets(name, value[i])
		}
	case string:
		if value != "" && slices.ContainsFunc(secretWords, func(word string) bool { return strings.Contains(name, word) }) {
			return hidden
		}
		return passwordInURL.ReplaceAllString(value, "${1}"+hidden+"@")
	case json.Number:
		if slices.ContainsFunc(secretWords, func(word string) bool { return strings.HasSuffix(name, word) }) {
			return hidden
		}
	}
	return value
}

// Version is the version of the server at the URL.
func (c *Client) Version(ctx context.Context, url string) (string, error) {
	var answer struct {
		Version string `json:"version"`
	}
	err := c.get(ctx, url+"/v1/version", &answer)
	return answer.Version, err
}

// get reads one answer. What is in an error is ours, and nothing that the server wrote: it
// goes into a status.
func (c *Client) get(ctx context.Context, url string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("asking %s: it is no URL", url)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return unanswered(url, err)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, largest+1))
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return unanswered(url, err)
	}
	switch code := response.StatusCode; {
	case code >= 300 && code < 400:
		return fmt.Errorf("asking %s: the server redirects with the status %d, which is not followed", url, code)
	case code != http.StatusOK:
		return fmt.Errorf("asking %s: the server answers with the status %d", url, code)
	case len(body) > largest:
		return fmt.Errorf("asking %s: the answer is longer than %d KiB", url, largest>>10)
	case json.Unmarshal(body, into) != nil:
		return fmt.Errorf("asking %s: the answer cannot be read", url)
	}
	return nil
}

// unanswered says in few words why there is no answer, and always in the same for the same
// reason: an error of net/http may quote what the server wrote, and has ports of the moment.
func unanswered(url string, err error) error {
	var dns *net.DNSError
	reason := "the server does not answer as a server of HTTP does"
	switch {
	case errors.Is(err, context.DeadlineExceeded), os.IsTimeout(err):
		reason = fmt.Sprintf("there is no answer within %s", timeout)
	case errors.As(err, &dns):
		reason = "the name of its host is not known"
	case errors.Is(err, syscall.ECONNREFUSED):
		reason = "the connection is refused"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		reason = "the connection was broken off"
	}
	return fmt.Errorf("asking %s: %s", url, reason)
}
