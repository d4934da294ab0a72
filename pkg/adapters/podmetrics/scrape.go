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
		return nil, fmt.Errorf("asking %s: %w", settings.Location(address.String()), err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		_, _ = io.CopyN(io.Discard, response.Body, 4<<10)
		return nil, fmt.Errorf("asking %s: the answer is %s", settings.Location(address.String()), response.Status)
	}
	found, err := v.parse(response.Body)
	if err != nil {
		return nil, fmt.Errorf("asking %s: %w", settings.Location(address.String()), err)
	}
	return found, nil
}
