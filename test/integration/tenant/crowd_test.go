package tenant_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
)

// crowd puts a series of a namespace, with a long label, into each answer of a Prometheus that it is not
// left out of, as a pod there can. Prometheus itself would think about such series for seconds here.
type crowd struct {
	// namespace is whose they are; nil while there are none.
	namespace atomic.Pointer[string]
}

// around serves what the server says, and the crowd.
func (c *crowd) around(server http.Handler) http.Handler {
	return http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		namespace := c.namespace.Load()
		if namespace == nil || !strings.HasSuffix(r.URL.Path, "/query") {
			server.ServeHTTP(out, r)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(out, err.Error(), http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		r.Header.Del("Accept-Encoding")
		said := httptest.NewRecorder()
		server.ServeHTTP(said, r)
		out.Header().Set("Content-Type", said.Header().Get("Content-Type"))
		out.WriteHeader(said.Code)
		form, err := url.ParseQuery(string(body))
		begin, rest, vector := bytes.Cut(said.Body.Bytes(), []byte(`"result":[`))
		if err != nil || !vector || strings.Contains(form.Get("query"), fmt.Sprintf("namespace!~%q", *namespace)) {
			_, _ = out.Write(said.Body.Bytes())
			return
		}
		end := ","
		if bytes.HasPrefix(rest, []byte("]")) {
			end = ""
		}
		_, _ = out.Write(begin)
		_, _ = fmt.Fprintf(out, `"result":[{"metric":{"namespace":%q,"pod":"fake","model_name":"%s"},"value":[%d,"1"]}%s`, *namespace, strings.Repeat("x", 8<<20), time.Now().Unix(), end)
		_, _ = out.Write(rest)
	})
}
