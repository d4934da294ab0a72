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
	"time"
)

// auditPolicy has the API server note who writes to a scale subresource, and what.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: RequestResponse
  verbs: [update, patch]
  resources:
  - {group: apps, resources: [deployments/scale, statefulsets/scale, replicasets/scale]}
- level: None
`

// credentialKey names the token in what the API server knows of a user.
const credentialKey = "authentication.kubernetes.io/credential-id"

// ScaleWrite is one request to write a scale subresource, as the API server's audit log has
// it.
type ScaleWrite struct {
	// At is when the API server had answered.
	At time.Time
	// User is the name of the user, and Credential that of the token: "JTI=..."; empty
	// without one.
	User, Credential string
	// Resource, Namespace and Name are those of the target: "deployments".
	Resource, Namespace, Name string
	// Replicas is what was asked for, and Code the status of the answer.
	Replicas int32
	Code     int32
}

// ScaleWrites are all requests to write a scale subresource so far, in their order. The
// cluster must run with Options.Audit.
func (c *Cluster) ScaleWrites() ([]ScaleWrite, error) {
	text, err := os.ReadFile(c.auditLog())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	var writes []ScaleWrite
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var event auditEvent
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			// The last line may be written only in part.
			continue
		}
		writes = append(writes, event.scaleWrite())
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	return writes, nil
}

// auditEvent is what is read of one line of the log.
type auditEvent struct {
	StageTimestamp time.Time `json:"stageTimestamp"`
	User           struct {
		Username string              `json:"username"`
		Extra    map[string][]string `json:"extra"`
	} `json:"user"`
	ObjectRef struct {
		Resource  string `json:"resource"`
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
	} `json:"objectRef"`
	ResponseStatus struct {
		Code int32 `json:"code"`
	} `json:"responseStatus"`
	RequestObject struct {
		Spec struct {
			Replicas int32 `json:"replicas"`
		} `json:"spec"`
	} `json:"requestObject"`
}

func (e *auditEvent) scaleWrite() ScaleWrite {
	w := ScaleWrite{
		At: e.StageTimestamp, User: e.User.Username, Resource: e.ObjectRef.Resource, Namespace: e.ObjectRef.Namespace, Name: e.ObjectRef.Name,
		Replicas: e.RequestObject.Spec.Replicas, Code: e.ResponseStatus.Code,
	}
	if ids := e.User.Extra[credentialKey]; len(ids) > 0 {
		w.Credential = ids[0]
	}
	return w
}

func (c *Cluster) auditLog() string { return filepath.Join(c.logs, "audit.jsonl") }

// auditFlags make the API server keep the log.
func (c *Cluster) auditFlags() ([]string, error) {
	if !c.options.Audit {
		return nil, nil
	}
	policy := c.file("audit-policy.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		return nil, fmt.Errorf("write the audit policy: %w", err)
	}
	return []string{"--audit-policy-file=" + policy, "--audit-log-path=" + c.auditLog()}, nil
}
