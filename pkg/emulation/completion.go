package emulation

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode"

	"llmd.ai/workload-variant-autoscaler/pkg/simulation"
)

// maxBody is the largest body of a request in bytes.
const maxBody = 16 << 20

// defaultMaxTokens is what the OpenAI completions interface takes for max_tokens.
const defaultMaxTokens = 16

// word is every generated token.
const word = " token"

// completionRequest is the part of an OpenAI completions request that is read.
type completionRequest struct {
	Model string `json:"model"`
	// Prompt counts as many tokens as it has words, separated by white space.
	Prompt string `json:"prompt"`
	// MaxTokens is how many tokens are generated, exactly: there is no end of
	// sequence to find, so ignore_eos changes nothing.
	MaxTokens *int `json:"max_tokens"`
	Stream    bool `json:"stream"`
}

type completionResponse struct {
	ID      string             `json:"id"`
	Object  string             `json:"object"`
	Created int64              `json:"created"`
	Model   string             `json:"model"`
	Choices []completionChoice `json:"choices"`
	Usage   *completionUsage   `json:"usage,omitempty"`
}

type completionChoice struct {
	Index        int     `json:"index"`
	Text         string  `json:"text"`
	FinishReason *string `json:"finish_reason"`
}

type completionUsage struct {
	PromptTokens     int `json:"prompt_tokens"`
	CompletionTokens int `json:"completion_tokens"`
	TotalTokens      int `json:"total_tokens"`
}

// completion is one request being answered.
type completion struct {
	id            string
	model         string
	created       int64
	input, output int
}

// complete answers POST /v1/completions. The header of a streamed answer comes
// with the first token. To spare the machine, one chunk carries the first token
// and one all others, with the usage; a client that wants the time per token
// divides the time between the two.
func (s *Server) complete(w http.ResponseWriter, r *http.Request) {
	request, status, err := s.read(w, r)
	if err != nil {
		refuse(w, status, err.Error())
		return
	}
	c := completion{model: s.options.Model, created: time.Now().Unix(), input: countWords(request.Prompt), output: *request.MaxTokens}
	t, err := s.submit(c.input, c.output)
	switch {
	case errors.Is(err, errDraining):
		refuse(w, http.StatusServiceUnavailable, err.Error())
		return
	case err != nil:
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	defer s.cancel(t)
	c.id = fmt.Sprintf("cmpl-%d", t.id)
	if request.Stream {
		c.stream(w, r, t)
		return
	}
	if await(r, t, simulation.Finished) {
		answer(w, http.StatusOK, c.response(c.output, true))
	}
}

func (s *Server) read(w http.ResponseWriter, r *http.Request) (request completionRequest, status int, err error) {
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&request); err != nil {
		return request, http.StatusBadRequest, fmt.Errorf("the body is no completions request with a prompt that is a string: %w", err)
	}
	if request.Model != s.options.Model {
		return request, http.StatusNotFound, fmt.Errorf("the model %q does not exist here; this server has %q", request.Model, s.options.Model)
	}
	if request.MaxTokens == nil {
		request.MaxTokens = new(int)
		*request.MaxTokens = defaultMaxTokens
	}
	return request, 0, nil
}

// await waits for an event of a kind; false means that the client is gone.
func await(r *http.Request, t *ticket, kind simulation.Kind) bool {
	for {
		select {
		case event := <-t.events:
			if event.Kind == kind {
				return true
			}
		case <-r.Context().Done():
			return false
		}
	}
}

func (c completion) stream(w http.ResponseWriter, r *http.Request, t *ticket) {
	if !await(r, t, simulation.FirstToken) {
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-cache")
	if c.output > 1 {
		if c.send(w, c.response(1, false)) != nil || http.NewResponseController(w).Flush() != nil {
			return
		}
	}
	if !await(r, t, simulation.Finished) {
		return
	}
	rest := c.output
	if c.output > 1 {
		rest--
	}
	if c.send(w, c.response(rest, true)) == nil {
		_, _ = w.Write([]byte("data: [DONE]\n\n"))
	}
}

func (c completion) send(w http.ResponseWriter, response completionResponse) error {
	body, err := json.Marshal(response)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "data: %s\n\n", body)
	return err
}

// response carries the given number of tokens; the last one also the reason of
// the end and the usage.
func (c completion) response(tokens int, last bool) completionResponse {
	response := completionResponse{
		ID: c.id, Object: "text_completion", Created: c.created, Model: c.model,
		Choices: []completionChoice{{Text: strings.Repeat(word, tokens)}},
	}
	if last {
		length := "length"
		response.Choices[0].FinishReason = &length
		response.Usage = &completionUsage{PromptTokens: c.input, CompletionTokens: c.output, TotalTokens: c.input + c.output}
	}
	return response
}

func (s *Server) models(w http.ResponseWriter, _ *http.Request) {
	type model struct {
		ID     string `json:"id"`
		Object string `json:"object"`
	}
	answer(w, http.StatusOK, struct {
		Object string  `json:"object"`
		Data   []model `json:"data"`
	}{"list", []model{{s.options.Model, "model"}}})
}

// refuse answers with an error as the OpenAI interface shapes it.
func refuse(w http.ResponseWriter, status int, message string) {
	type detail struct {
		Message string `json:"message"`
		Type    string `json:"type"`
		Code    int    `json:"code"`
	}
	answer(w, status, struct {
		Error detail `json:"error"`
	}{detail{message, http.StatusText(status), status}})
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// The client is gone when this fails, and nobody is left to tell.
	_ = json.NewEncoder(w).Encode(body)
}

// countWords is the number of words, as strings.Fields would find them.
func countWords(text string) int {
	words, inside := 0, false
	for _, r := range text {
		space := unicode.IsSpace(r)
		if inside && space || !inside && !space {
			inside = !inside
			if inside {
				words++
			}
		}
	}
	return words
}
