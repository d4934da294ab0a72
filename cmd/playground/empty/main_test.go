package empty

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"llmd.ai/workload-variant-autoscaler/pkg/localcluster"
)

func TestBadArgumentsAreNamed(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"nodes":        `unexpected argument "nodes"`,
		"--startup 2h": "--startup is 2h0m0s; expected between 0 and 1h",
		"--model=":     "--model, --namespace and --env must not be empty",
		"--nodes 3":    "unknown flag: --nodes",
	} {
		var out, errors bytes.Buffer
		assert.Equal(t, exitUsage, Main(strings.Fields(line), &out, &errors), line)
		assert.Contains(t, errors.String(), want)
		assert.Equal(t, 1, strings.Count(errors.String(), "\n"), "one line: %s", errors.String())
	}
	var out bytes.Buffer
	assert.Equal(t, exitGood, Main([]string{"--help"}, &out, io.Discard))
	assert.Contains(t, out.String(), "--startup")
}

// said is what the command says, from which a test learns that it is up.
type said struct{ up chan struct{} }

func (s *said) Write(text []byte) (int, error) {
	if bytes.Contains(text, []byte("The cluster is empty")) {
		close(s.up)
	}
	return len(text), nil
}

// A pod that asks for a model server gets one, and the router finds it. The file of
// settings is there while the cluster is.
func TestAModelIsServed(t *testing.T) {
	programs, err := localcluster.Programs()
	require.NoError(t, err)
	o := options{Model: "m", Namespace: "chat", Env: filepath.Join(t.TempDir(), "env"), programs: programs}
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	up, ended := &said{make(chan struct{})}, make(chan error, 1)
	go func() { ended <- run(ctx, o, up) }()
	select {
	case <-up.up:
	case err := <-ended:
		t.Fatal(err)
	}
	settings := readSettings(t, o.Env)
	config, err := clientcmd.BuildConfigFromFlags("", settings["KUBECONFIG"])
	require.NoError(t, err)
	client := kubernetes.NewForConfigOrDie(config)
	_, err = client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: o.Namespace}}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.EventuallyWithT(t, func(c *assert.CollectT) { // until the namespace has its service account
		_, err := client.CoreV1().Pods(o.Namespace).Create(ctx, server(), metav1.CreateOptions{})
		assert.NoError(c, err)
	}, time.Minute, 100*time.Millisecond)

	// The router holds the request until the server is Ready.
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, settings["REQUESTS"], strings.NewReader(`{"model":"m","prompt":"a","max_tokens":2}`))
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	assert.Equal(t, http.StatusOK, response.StatusCode)

	stop()
	require.NoError(t, <-ended)
	assert.NoFileExists(t, o.Env)
}

// server is a pod whose model server is emulated.
func server() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "a", Annotations: map[string]string{"emulation.llmd.ai/model-server": ""}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "vllm", Image: "vllm", Args: []string{"--model=other", "--served-model-name=m"}}}},
	}
}

// readSettings are the variables that a shell gets from the file.
func readSettings(t *testing.T, path string) map[string]string {
	t.Helper()
	data, err := os.ReadFile(path) //nolint:gosec // the test named it
	require.NoError(t, err)
	settings := map[string]string{}
	for line := range strings.Lines(string(data)) {
		name, value, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "export "), "=")
		require.True(t, ok, line)
		settings[name] = strings.Trim(value, "'")
	}
	return settings
}
