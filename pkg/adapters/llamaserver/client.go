package llamaserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/v1alpha2"
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

// secretWords are in the names of settings that may hold a secret.
var secretWords = []string{"key", "password", "secret", "token"}

// shown is a configuration for everybody who may read an object: no secret, whatever the
// server shows, and an object even where there are no settings.
func shown(raw []byte) []byte {
	var config map[string]any
	if json.Unmarshal(raw, &config) != nil || config == nil {
		return []byte("{}")
	}
	hide(config)
	text, err := json.Marshal(config)
	if err != nil {
		return []byte("{}")
	}
	return text
}

func hide(config map[string]any) {
	for key, value := range config {
		switch value := value.(type) {
		case map[string]any:
			hide(value)
		case string:
			isSecret := func(word string) bool { return strings.Contains(strings.ToLower(key), word) }
			if value != "" && slices.ContainsFunc(secretWords, isSecret) {
				config[key] = "********"
			}
		}
	}
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
		return fmt.Errorf("asking %s: %w", url, err)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, largest))
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return fmt.Errorf("asking %s: %w", url, err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("asking %s: %s", url, response.Status)
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("asking %s: the answer cannot be read: %w", url, err)
	}
	return nil
}
