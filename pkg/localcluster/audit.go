package localcluster

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// auditPolicy has the API server note who changes the scale of something, and what tells whether that was right:
// who leads, what else scales it, and when it came and went. The leases of nodes are left out, for there are many.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: RequestResponse
  verbs: [update, patch]
  resources:
  - {group: apps, resources: [deployments/scale, statefulsets/scale, replicasets/scale]}
- level: None
  namespaces: [kube-node-lease]
- level: Request
  verbs: [create, update, patch, delete]
  resources:
  - {group: coordination.k8s.io, resources: [leases]}
- level: Request
  verbs: [create, delete]
  resources:
  - {group: apps, resources: [deployments]}
  - {group: autoscaling, resources: [horizontalpodautoscalers]}
- level: Metadata
  verbs: [update, patch]
  resources:
  - {group: llmd.ai, resources: [variantautoscalings/status]}
- level: None
`

// credentialKey names the token in what the API server knows of a user.
const credentialKey = "authentication.kubernetes.io/credential-id"

// Request is one request of the API server's audit log.
type Request struct {
	// Received is when the request came, and At when the API server had answered.
	Received, At time.Time
	Verb         string
	// User is the name of the user, and Credential that of the token: "JTI=..."; empty
	// without one.
	User, Credential string
	// Group is the API group of the object; empty for the core's.
	Group string
	// Resource, Subresource, Namespace and Name are those of the object: "deployments", "scale".
	Resource, Subresource, Namespace, Name string
	// Code is the status of the answer.
	Code int32
	// Body is the object as it was sent; empty where the log leaves it out.
	Body json.RawMessage
}

// ScaleWrite is one request to write a scale subresource.
type ScaleWrite struct {
	Request
	// Replicas is what was asked for.
	Replicas int32
}

// ScaleWrites are all requests to write a scale subresource so far, in their order. The
// cluster must run with Options.Audit.
func (c *Cluster) ScaleWrites() ([]ScaleWrite, error) {
	requests, err := c.Requests()
	if err != nil {
		return nil, err
	}
	return ScaleWrites(requests)
}

// ScaleWrites are the requests among others that write a scale subresource.
func ScaleWrites(requests []Request) ([]ScaleWrite, error) {
	var writes []ScaleWrite
	for _, r := range requests {
		if r.Subresource != "scale" || r.Verb != "update" && r.Verb != "patch" {
			continue
		}
		replicas, err := replicasOf(r)
		if err != nil {
			return nil, err
		}
		writes = append(writes, ScaleWrite{Request: r, Replicas: replicas})
	}
	return writes, nil
}

func replicasOf(r Request) (int32, error) {
	var body struct {
		Spec struct {
			Replicas int32 `json:"replicas"`
		} `json:"spec"`
	}
	if len(r.Body) == 0 {
		return 0, nil
	}
	if err := json.Unmarshal(r.Body, &body); err != nil {
		return 0, fmt.Errorf("read a write of the scale of %s %s/%s: %w", r.Resource, r.Namespace, r.Name, err)
	}
	return body.Spec.Replicas, nil
}

// Requests are all requests so far that the audit log has, in the order in which they were
// answered: writes of scale subresources, leases but those of nodes, creations and
// deletions of Deployments and HorizontalPodAutoscalers, and writes of the status of
// VariantAutoscalings; and all of Options.AuditGroup. The cluster must run with Options.Audit. A kill of the API
// server may cost the log one line.
func (c *Cluster) Requests() ([]Request, error) {
	text, err := os.ReadFile(c.auditLog())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	var requests []Request
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var event auditEvent
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			// The last line of a process may be written only in part.
			continue
		}
		requests = append(requests, event.request())
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	return requests, nil
}

// auditEvent is what is read of one line of the log.
type auditEvent struct {
	RequestReceivedTimestamp time.Time `json:"requestReceivedTimestamp"`
	StageTimestamp           time.Time `json:"stageTimestamp"`
	Verb                     string    `json:"verb"`
	User                     struct {
		Username string              `json:"username"`
		Extra    map[string][]string `json:"extra"`
	} `json:"user"`
	ObjectRef struct {
		Group       string `json:"apiGroup"`
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	ResponseStatus struct {
		Code int32 `json:"code"`
	} `json:"responseStatus"`
	RequestObject json.RawMessage `json:"requestObject"`
}

func (e *auditEvent) request() Request {
	r := Request{
		Received: e.RequestReceivedTimestamp, At: e.StageTimestamp, Verb: e.Verb, User: e.User.Username,
		Group: e.ObjectRef.Group, Resource: e.ObjectRef.Resource, Subresource: e.ObjectRef.Subresource, Namespace: e.ObjectRef.Namespace, Name: e.ObjectRef.Name,
		Code: e.ResponseStatus.Code, Body: e.RequestObject,
	}
	if ids := e.User.Extra[credentialKey]; len(ids) > 0 {
		r.Credential = ids[0]
	}
	return r
}

func (c *Cluster) auditLog() string { return filepath.Join(c.logs, "audit.jsonl") }

// auditFlags make the API server keep the log.
func (c *Cluster) auditFlags() ([]string, error) {
	if !c.options.Audit {
		return nil, nil
	}
	text := auditPolicy
	if group := c.options.AuditGroup; group != "" {
		// The first rule that matches counts, and the last one is for all that is left.
		text = strings.TrimSuffix(text, "- level: None\n") + "- level: Metadata\n  userGroups: [\"" + group + "\"]\n- level: None\n"
	}
	policy := c.file("audit-policy.yaml")
	if err := os.WriteFile(policy, []byte(text), 0o600); err != nil {
		return nil, fmt.Errorf("write the audit policy: %w", err)
	}
	return []string{"--audit-policy-file=" + policy, "--audit-log-path=" + c.auditLog()}, nil
}
