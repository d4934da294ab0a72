package localcluster

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheAuditLogIsRead(t *testing.T) {
	c := &Cluster{logs: t.TempDir()}
	writes, err := c.ScaleWrites()
	require.NoError(t, err)
	assert.Empty(t, writes, "nobody wrote yet")
	line := `{"requestReceivedTimestamp":"2026-01-02T03:04:05.5Z","stageTimestamp":"2026-01-02T03:04:05.6Z","verb":"update",` +
		`"user":{"username":"me","extra":{"authentication.kubernetes.io/credential-id":["JTI=7"]}},` +
		`"objectRef":{"resource":"deployments","namespace":"n","name":"d","subresource":"scale"},"responseStatus":{"code":409},"requestObject":{"spec":{"replicas":3}}}`
	lease := `{"verb":"update","user":{"username":"me"},"objectRef":{"resource":"leases","namespace":"n","name":"l"},"responseStatus":{"code":200}}`
	require.NoError(t, os.WriteFile(filepath.Join(c.logs, "audit.jsonl"), []byte(lease+"\n"+line+"\n"+line[:40]), 0o600))
	requests, err := c.Requests()
	require.NoError(t, err)
	require.Len(t, requests, 2, "a line that is cut off is none")
	assert.Equal(t, "leases", requests[0].Resource)
	writes, err = c.ScaleWrites()
	require.NoError(t, err)
	want := Request{
		Received: time.Date(2026, 1, 2, 3, 4, 5, 500e6, time.UTC), At: time.Date(2026, 1, 2, 3, 4, 5, 600e6, time.UTC), Verb: "update",
		User: "me", Credential: "JTI=7", Resource: "deployments", Subresource: "scale", Namespace: "n", Name: "d", Code: 409,
		Body: []byte(`{"spec":{"replicas":3}}`),
	}
	assert.Equal(t, []ScaleWrite{{Request: want, Replicas: 3}}, writes)
}
