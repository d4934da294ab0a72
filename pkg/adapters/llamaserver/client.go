package llamaserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/v1alpha2"
	settings "llmd.ai/workload-variant-autoscaler/pkg/config"
)

const (
	// timeout bounds one question.
	timeout = 5 * time.Second
	// largest bounds an answer, in bytes.
	largest = 1 << 20
)

// Client asks servers. Its zero value asks through the proxy that the environment names,
// if any.
type Client struct{}

// Providers are the providers that the server at the URL has, with how they are.
func (Client) Providers(ctx context.Context, url string) ([]v1alpha2.ProviderInfo, error) {
	var answer struct {
		Data []v1alpha2.ProviderInfo `json:"data"`
	}
	err := get(ctx, url+"/v1/providers", &answer)
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
func (Client) Version(ctx context.Context, url string) (string, error) {
	var answer struct {
		Version string `json:"version"`
	}
	err := get(ctx, url+"/v1/version", &answer)
	return answer.Version, err
}

func get(ctx context.Context, url string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("asking %s: %w", url, err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return unanswered(url, err)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, largest))
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return unanswered(url, err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("asking %s: %s", url, response.Status)
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("asking %s: the answer cannot be read: %w", url, err)
	}
	return nil
}

// unanswered is an error that is the same each time.
func unanswered(url string, err error) error {
	return fmt.Errorf("asking %s: %w", url, settings.Steady(err))
}
