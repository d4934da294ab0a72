package emulation

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"sigs.k8s.io/yaml"
)

// stackVersion is the version of Llama Stack that is emulated.
const stackVersion = "0.5.0"

// Stack answers as a Llama Stack server with a configuration does, as far as a client of
// its models and whoever looks after it see it. It is an http.Handler of
//
//	GET  /v1/health, /v1/version, /v1/providers, /v1/models
//	POST /v1/completions    forwarded to the provider of the model
//
// A model is asked for by its own name, or by that of its provider, a slash and its name.
type Stack struct {
	handler   http.Handler
	transport http.RoundTripper
	providers []stackProvider
	models    []stackModel

	mu sync.Mutex
	// answered counts the answers of providers, by their IDs.
	answered map[string]int
}

type stackProvider struct {
	API    string         `json:"api"`
	ID     string         `json:"provider_id"`
	Type   string         `json:"provider_type"`
	Config map[string]any `json:"config"`
	Health stackHealth    `json:"health"`
}

type stackHealth struct {
	Status  string `json:"status"`
	Message string `json:"message"`
}

type stackModel struct {
	Name     string `json:"model_id"`
	Provider string `json:"provider_id"`
	// Own is what the provider calls it, where that is another name.
	Own string `json:"provider_model_id"`
}

// NewStack reads a configuration, config.yaml, in which the variables of an environment
// are expanded as the server does. A variable that is needed and not set is an error.
func NewStack(configuration []byte, environment map[string]string) (*Stack, error) {
	var content map[string]any
	if err := yaml.Unmarshal(configuration, &content); err != nil {
		return nil, fmt.Errorf("emulated Llama Stack: reading the configuration: %w", err)
	}
	expanded, err := expand(content, environment)
	if err != nil {
		return nil, fmt.Errorf("emulated Llama Stack: %w", err)
	}
	text, err := json.Marshal(expanded)
	if err != nil {
		return nil, fmt.Errorf("emulated Llama Stack: %w", err)
	}
	var read struct {
		Providers  map[string][]stackProvider `json:"providers"`
		Registered struct {
			Models []stackModel `json:"models"`
		} `json:"registered_resources"`
	}
	if err := json.Unmarshal(text, &read); err != nil {
		return nil, fmt.Errorf("emulated Llama Stack: reading the configuration: %w", err)
	}
	s := &Stack{transport: newTransport(), answered: map[string]int{}}
	for _, api := range slices.Sorted(maps.Keys(read.Providers)) {
		for _, p := range read.Providers[api] {
			if p.ID == "" {
				continue // its variable is not set
			}
			p.API = api
			s.providers = append(s.providers, p)
		}
	}
	for _, m := range read.Registered.Models {
		if m.Name == "" || m.Provider == "" {
			continue
		}
		if s.provider(m.Provider) == nil {
			return nil, fmt.Errorf("emulated Llama Stack: the model %q has the provider %q, which there is not", m.Name, m.Provider)
		}
		s.models = append(s.models, m)
	}
	s.route()
	return s, nil
}

func (s *Stack) route() {
	mux := http.NewServeMux()
	say := func(path string, value any) {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, value) })
	}
	say("/v1/health", map[string]any{"status": "OK"})
	say("/v1/version", map[string]any{"version": stackVersion})
	mux.HandleFunc("GET /v1/providers", s.list)
	say("/v1/models", map[string]any{"data": s.models})
	mux.HandleFunc("POST /v1/completions", s.complete)
	s.handler = mux
}

// ServeHTTP implements http.Handler.
func (s *Stack) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	s.handler.ServeHTTP(w, request)
}

// healthTimeout bounds the question how a provider is.
const healthTimeout = 2 * time.Second

// list answers GET /v1/providers. Of all types, vLLM alone is asked how it is.
func (s *Stack) list(w http.ResponseWriter, request *http.Request) {
	providers := slices.Clone(s.providers)
	for i := range providers {
		providers[i].Health = stackHealth{"Not Implemented", "this type of provider is not asked"}
		if p := &providers[i]; p.Type == "remote::vllm" {
			p.Health = s.health(request.Context(), p)
		}
	}
	answer(w, http.StatusOK, map[string]any{"data": providers})
}

func (s *Stack) health(ctx context.Context, p *stackProvider) stackHealth {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	address, _ := p.Config["base_url"].(string)
	out, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(strings.TrimSuffix(address, "/"), "/v1")+"/health", nil)
	if err != nil {
		return stackHealth{"Error", err.Error()}
	}
	response, err := s.transport.RoundTrip(out)
	if err != nil {
		return stackHealth{"Error", err.Error()}
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return stackHealth{"Error", response.Status}
	}
	return stackHealth{"OK", ""}
}

// provider is the inference provider with an ID.
func (s *Stack) provider(id string) *stackProvider {
	for i := range s.providers {
		if s.providers[i].API == "inference" && s.providers[i].ID == id {
			return &s.providers[i]
		}
	}
	return nil
}

// complete sends a request to the provider of its model, under the model's name there.
func (s *Stack) complete(w http.ResponseWriter, request *http.Request) {
	var body map[string]json.RawMessage
	if err := json.NewDecoder(http.MaxBytesReader(w, request.Body, maxBody)).Decode(&body); err != nil {
		refuse(w, http.StatusBadRequest, "the body is no completions request: "+err.Error())
		return
	}
	var name string
	_ = json.Unmarshal(body["model"], &name) // a name that is none is no model's
	for _, m := range s.models {
		if name != m.Name && name != m.Provider+"/"+m.Name {
			continue
		}
		if m.Own == "" {
			m.Own = m.Name
		}
		body["model"], _ = json.Marshal(m.Own)
		s.forward(w, request, s.provider(m.Provider), body)
		return
	}
	refuse(w, http.StatusNotFound, fmt.Sprintf("the model %q is not registered here", name))
}

func (s *Stack) forward(w http.ResponseWriter, request *http.Request, p *stackProvider, body map[string]json.RawMessage) {
	address, _ := p.Config["base_url"].(string)
	text, err := json.Marshal(body)
	if err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	out, err := http.NewRequestWithContext(request.Context(), http.MethodPost, strings.TrimSuffix(address, "/")+"/completions", bytes.NewReader(text))
	if err != nil {
		refuse(w, http.StatusInternalServerError, err.Error())
		return
	}
	out.Header.Set("Content-Type", "application/json")
	if token, ok := p.Config["api_token"].(string); ok && token != "" {
		out.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := s.transport.RoundTrip(out)
	if err != nil {
		if request.Context().Err() == nil {
			refuse(w, http.StatusBadGateway, fmt.Sprintf("the provider %s at %s does not answer: %v", p.ID, address, err))
		}
		return
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode >= http.StatusInternalServerError {
		reason, _ := io.ReadAll(io.LimitReader(response.Body, 512))
		refuse(w, response.StatusCode, fmt.Sprintf("the provider %s: %s", p.ID, bytes.TrimSpace(reason)))
		return
	}
	relay(w, response)
	if response.StatusCode == http.StatusOK {
		s.mu.Lock()
		s.answered[p.ID]++
		s.mu.Unlock()
	}
}

// Answered is how many requests for models the provider with an ID has answered.
func (s *Stack) Answered(provider string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.answered[provider]
}

// variable is a reference to the environment: with a default behind :=, or what stands for
// it behind :+ where it is set.
var variable = regexp.MustCompile(`\$\{env\.([A-Z0-9_]+)(?::([=+])([^}]*))?\}`)

// expand has every text of the data with its variables replaced.
func expand(value any, environment map[string]string) (any, error) {
	switch value := value.(type) {
	case string:
		return expandText(value, environment)
	case []any:
		for i := range value {
			expanded, err := expand(value[i], environment)
			if err != nil {
				return nil, err
			}
			value[i] = expanded
		}
	case map[string]any:
		for key := range value {
			expanded, err := expand(value[key], environment)
			if err != nil {
				return nil, err
			}
			value[key] = expanded
		}
	}
	return value, nil
}

func expandText(text string, environment map[string]string) (any, error) {
	var missing error
	expanded := variable.ReplaceAllStringFunc(text, func(reference string) string {
		match := variable.FindStringSubmatch(reference)
		set := environment[match[1]]
		switch {
		case match[2] == "=" && set == "":
			return match[3]
		case match[2] == "+" && set != "":
			return match[3]
		case match[2] == "+":
			return ""
		case set == "":
			missing = errors.Join(missing, fmt.Errorf("the variable %s is not set", match[1]))
		}
		return set
	})
	return expanded, missing
}
