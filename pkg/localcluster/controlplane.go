package localcluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/rest"
)

// socketLimit is the longest path of a Unix socket that the kernel takes, without the final zero.
const socketLimit = 107

// portAttempts is how often a child that found its port taken is started at another one.
const portAttempts = 3

// controllers are those that workloads, nodes, accounts and autoscalers need. Aggregated cluster roles are
// among them because that is how users grant more kinds to the autoscaler.
var controllers = []string{
	"deployment-controller", "replicaset-controller", "statefulset-controller",
	"node-lifecycle-controller", "taint-eviction-controller", "pod-garbage-collector-controller",
	"garbage-collector-controller", "namespace-controller",
	"serviceaccount-controller", "serviceaccount-token-controller", "root-ca-certificate-publisher-controller",
	"clusterrole-aggregation-controller", "endpointslice-controller", "horizontal-pod-autoscaler-controller",
	"resourcequota-controller",
}

func (c *Cluster) program(name string) string { return filepath.Join(c.options.Programs, name) }

func (c *Cluster) file(name string) string { return filepath.Join(c.dir, name) }

// component is a child that is a role of the playground program.
func (c *Cluster) component(name string, ready func(context.Context) error, flags ...string) Process {
	return Process{Name: name, Path: c.program("playground"), Args: append([]string{"component", name}, flags...), Ready: ready}
}

// serving are the flags with which Kubernetes' programs listen at a port, with the cluster's certificate: one
// of their own would cost them two new RSA keys.
func (c *Cluster) serving(port int) []string {
	return []string{
		"--bind-address=" + c.block.host(), "--secure-port=" + strconv.Itoa(port),
		"--tls-cert-file=" + c.file("serving.crt"), "--tls-private-key-file=" + c.file("serving.key"),
	}
}

// startAt starts a child that listens at a port of the cluster's host, at another one when it was taken in
// between.
func (c *Cluster) startAt(ctx context.Context, in layer, process func(port int) Process) error {
	for attempt := 1; ; attempt++ {
		port, err := c.block.freePort()
		if err != nil {
			return err
		}
		err = c.start(ctx, in, process(port))
		if err == nil || attempt == portAttempts || !strings.Contains(err.Error(), "address already in use") {
			return err
		}
	}
}

func (c *Cluster) startStore(ctx context.Context) error {
	socket := c.file("etcd.sock")
	if len(socket) > socketLimit {
		return fmt.Errorf("the path of the Unix socket %s is longer than %d bytes: choose a shorter directory (Options.Dir or $TMPDIR)", socket, socketLimit)
	}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}
	ready := healthy(&http.Client{Transport: &http.Transport{DialContext: dial}}, "http://etcd/health")
	return c.start(ctx, storeLayer, c.component("etcd", ready,
		"--data-dir="+c.file("etcd"), "--listen-socket="+socket))
}

func (c *Cluster) startAPIServer(ctx context.Context) error {
	audit, err := c.auditFlags()
	if err != nil {
		return err
	}
	return c.startAt(ctx, apiLayer, func(port int) Process {
		c.server = fmt.Sprintf("https://%s:%d", c.block.host(), port)
		err := c.becomeAdmin()
		ready := func(ctx context.Context) error {
			if err != nil {
				return err
			}
			return c.apiReady(ctx)
		}
		flags := append(c.serving(port),
			"--advertise-address="+c.block.host(),
			// The endpoint of the service "kubernetes" may not be a loopback address.
			"--endpoint-reconciler-type=none",
			"--etcd-servers=unix://"+c.file("etcd.sock"),
			"--client-ca-file="+c.file("ca.crt"),
			"--requestheader-client-ca-file="+c.file("front-proxy-ca.crt"),
			"--requestheader-username-headers=X-Remote-User",
			"--requestheader-group-headers=X-Remote-Group",
			"--requestheader-extra-headers-prefix=X-Remote-Extra-",
			"--proxy-client-cert-file="+c.file("front-proxy-client.crt"),
			"--proxy-client-key-file="+c.file("front-proxy-client.key"),
			"--authorization-mode=RBAC",
			"--service-account-issuer=https://kubernetes.default.svc",
			"--service-account-key-file="+c.file("service-account.key"),
			"--service-account-signing-key-file="+c.file("service-account.key"),
			"--service-cluster-ip-range=10.0.0.0/16",
			"--allow-privileged=true",
			"--profiling=false",
		)
		flags = append(flags, audit...)
		if !c.options.Components.ControllerManager {
			// Nobody would make the service accounts, and nobody would take the taint away.
			flags = append(flags, "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition")
		}
		if len(c.options.Admission) > 0 {
			flags = append(flags, "--enable-admission-plugins="+strings.Join(c.options.Admission, ","))
		}
		return c.component("kube-apiserver", ready, flags...)
	})
}

// apiReady asks the API server with the administrator's certificate.
func (c *Cluster) apiReady(ctx context.Context) error {
	client, err := rest.HTTPClientFor(c.admin)
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	return healthy(client, c.server+"/readyz")(ctx)
}

func (c *Cluster) startControllerManager(ctx context.Context) error {
	kubeconfig, err := c.writeUser("system:kube-controller-manager")
	if err != nil {
		return err
	}
	return c.startAt(ctx, clusterLayer, func(port int) Process {
		flags := append(c.serving(port),
			"--kubeconfig="+kubeconfig,
			"--controllers="+strings.Join(controllers, ","),
			"--leader-elect=false",
			"--use-service-account-credentials=true",
			"--service-account-private-key-file="+c.file("service-account.key"),
			"--root-ca-file="+c.file("ca.crt"),
			"--node-monitor-period=1s",
			"--horizontal-pod-autoscaler-sync-period=5s",
			"--kube-api-qps=500", "--kube-api-burst=1000",
		)
		return c.component("kube-controller-manager", c.healthyAt(port), flags...)
	})
}

func (c *Cluster) startScheduler(ctx context.Context) error {
	kubeconfig, err := c.writeUser("system:kube-scheduler")
	if err != nil {
		return err
	}
	return c.startAt(ctx, clusterLayer, func(port int) Process {
		flags := append(c.serving(port), "--kubeconfig="+kubeconfig, "--leader-elect=false")
		return c.component("kube-scheduler", c.healthyAt(port), flags...)
	})
}

func (c *Cluster) startKwok(ctx context.Context) error {
	kubeconfig, err := c.writeUser("kwok", "system:masters")
	if err != nil {
		return err
	}
	return c.startAt(ctx, clusterLayer, func(port int) Process {
		address := net.JoinHostPort(c.block.host(), strconv.Itoa(port))
		return c.component("kwok", Healthy("http://"+address+"/healthz"),
			"--kubeconfig="+kubeconfig, "--pod-block="+c.block.prefix(), "--node-address="+c.block.host(),
			"--listen-address="+address)
	})
}

// healthyAt asks one of Kubernetes' programs at a port of the cluster's host.
func (c *Cluster) healthyAt(port int) func(context.Context) error {
	pool := x509.NewCertPool()
	pool.AddCert(c.authority.certificate)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}
	return healthy(&http.Client{Transport: transport}, fmt.Sprintf("https://%s:%d/healthz", c.block.host(), port))
}

// Healthy is a question for Process.Ready that is answered when the URL answers 200.
func Healthy(url string) func(context.Context) error { return healthy(http.DefaultClient, url) }

// healthy is Healthy through a client that knows the way or the certificates.
func healthy(client *http.Client, url string) func(context.Context) error {
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return fmt.Errorf("ask %s: %w", url, err)
		}
		response, err := client.Do(request)
		if err != nil {
			return fmt.Errorf("ask %s: %w", url, err)
		}
		body, err := io.ReadAll(io.LimitReader(response.Body, 4096))
		if err := errors.Join(err, response.Body.Close()); err != nil {
			return fmt.Errorf("ask %s: %w", url, err)
		}
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("ask %s: %s: %s", url, response.Status, body)
		}
		return nil
	}
}
