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
	line := `{"stageTimestamp":"2026-01-02T03:04:05.6Z","user":{"username":"me","extra":{"authentication.kubernetes.io/credential-id":["JTI=7"]}},` +
		`"objectRef":{"resource":"deployments","namespace":"n","name":"d","subresource":"scale"},"responseStatus":{"code":409},"requestObject":{"spec":{"replicas":3}}}`
	require.NoError(t, os.WriteFile(filepath.Join(c.logs, "audit.jsonl"), []byte(line+"\n"+line[:40]), 0o600))
	writes, err = c.ScaleWrites()
	require.NoError(t, err)
	assert.Equal(t, []ScaleWrite{{
		At: time.Date(2026, 1, 2, 3, 4, 5, 600e6, time.UTC), User: "me", Credential: "JTI=7",
		Resource: "deployments", Namespace: "n", Name: "d", Replicas: 3, Code: 409,
	}}, writes)
}
