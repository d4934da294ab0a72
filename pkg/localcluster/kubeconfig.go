package localcluster

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// tokenSeconds is how long the token of a service account is valid: longer than any demonstration.
const tokenSeconds int64 = 24 * 60 * 60

// Config returns a client configuration of an administrator, without a client-side rate limit.
func (c *Cluster) Config() *rest.Config { return rest.CopyConfig(c.admin) }

// Kubeconfig is the path of an administrator's kubeconfig.
func (c *Cluster) Kubeconfig() string { return c.kubeconfigPath("admin") }

// KubeconfigFor writes a kubeconfig that holds a fresh token of a service account and nothing else, and
// returns its path. The service account must exist.
func (c *Cluster) KubeconfigFor(ctx context.Context, namespace, serviceAccount string) (string, error) {
	client, err := kubernetes.NewForConfig(c.admin)
	if err != nil {
		return "", fmt.Errorf("make a client: %w", err)
	}
	seconds := tokenSeconds
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	token, err := client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, serviceAccount, request, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("get a token of the service account %s/%s (apply the manifest that makes it first): %w", namespace, serviceAccount, err)
	}
	name := namespace + "-" + serviceAccount
	return c.writeKubeconfig(name, namespace, &clientcmdapi.AuthInfo{Token: token.Status.Token})
}

// Credential is the name that the token of a kubeconfig has in the audit log.
func Credential(kubeconfig string) (string, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return "", fmt.Errorf("read the kubeconfig %s: %w", kubeconfig, err)
	}
	parts := strings.Split(config.BearerToken, ".")
	if len(parts) != 3 {
		return "", fmt.Errorf("the token of the kubeconfig %s has %d parts, and that of a service account 3", kubeconfig, len(parts))
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return "", fmt.Errorf("read the token of the kubeconfig %s: %w", kubeconfig, err)
	}
	var claims struct {
		ID string `json:"jti"`
	}
	if err := json.Unmarshal(payload, &claims); err != nil {
		return "", fmt.Errorf("read the token of the kubeconfig %s: %w", kubeconfig, err)
	}
	return "JTI=" + claims.ID, nil
}

// writeUser writes the kubeconfig of a user that a client certificate names.
func (c *Cluster) writeUser(user string, groups ...string) (string, error) {
	certificate, key, err := c.authority.client(user, groups...)
	if err != nil {
		return "", err
	}
	return c.writeKubeconfig(user, "", &clientcmdapi.AuthInfo{ClientCertificateData: certificate, ClientKeyData: key})
}

func (c *Cluster) writeKubeconfig(name, namespace string, user *clientcmdapi.AuthInfo) (string, error) {
	config := clientcmdapi.NewConfig()
	config.Clusters["localcluster"] = &clientcmdapi.Cluster{Server: c.server, CertificateAuthorityData: c.authority.pem}
	config.AuthInfos[name] = user
	config.Contexts[name] = &clientcmdapi.Context{Cluster: "localcluster", AuthInfo: name, Namespace: namespace}
	config.CurrentContext = name
	// Written beside and renamed: a program that started a moment ago may be reading it.
	path, fresh := c.kubeconfigPath(name), c.kubeconfigPath(name+".new")
	if err := clientcmd.WriteToFile(*config, fresh); err != nil {
		return "", fmt.Errorf("write the kubeconfig of %s: %w", name, err)
	}
	if err := os.Rename(fresh, path); err != nil {
		return "", fmt.Errorf("write the kubeconfig of %s: %w", name, err)
	}
	return path, nil
}

func (c *Cluster) kubeconfigPath(name string) string {
	return filepath.Join(c.dir, name+".kubeconfig")
}

// becomeAdmin writes the administrator's kubeconfig and makes the cluster's own clients use it.
func (c *Cluster) becomeAdmin() error {
	path, err := c.writeUser("admin", "system:masters")
	if err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return fmt.Errorf("read the kubeconfig of the administrator: %w", err)
	}
	config.QPS = -1
	c.admin = config
	return nil
}
