package prometheus

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Labels of Services by which installations name their Prometheus: kube-prometheus, the chart prometheus
// and OpenShift by labelName, the chart kube-prometheus-stack by labelApp, and the operator by
// labelOperated the Service that it makes for each of its own.
const (
	labelName     = "app.kubernetes.io/name"
	labelPartOf   = "app.kubernetes.io/part-of"
	labelApp      = "app"
	labelOperated = "operated-prometheus"
	labelRelease  = "release"
	namedThanos   = "thanos-query"
	// servedByTLS is the annotation by which OpenShift gives a Service a certificate.
	servedByTLS = "service.beta.openshift.io/serving-cert-secret-name"
	// mostCandidates is how many Services an advice names.
	mostCandidates = 3
)

// bundles are the installations whose Prometheus has a service account of the name of its Service.
var bundles = []string{"kube-prometheus", "kube-prometheus-stack"}

// selectors find the Services, the best kind first.
var selectors = []string{
	labelName + " in (" + namedThanos + ", prometheus)", labelApp + "=kube-prometheus-stack-prometheus", labelOperated + "=true",
}

// Candidate is a Service that looks like a Prometheus.
type Candidate struct {
	service *corev1.Service
	port    corev1.ServicePort
}

// Candidates are the Services of the cluster that look like a Prometheus, the likeliest first. It
// lists them with the rights of its caller, in all namespaces.
func Candidates(ctx context.Context, api client.Reader) ([]Candidate, error) {
	var all []Candidate
	seen := map[string]bool{}
	for _, selector := range selectors {
		wanted, err := labels.Parse(selector)
		if err != nil {
			return nil, fmt.Errorf("looking for Prometheus: %w", err)
		}
		var list corev1.ServiceList
		if err := api.List(ctx, &list, client.MatchingLabelsSelector{Selector: wanted}); err != nil {
			return nil, fmt.Errorf("looking for Prometheus: %w", err)
		}
		// What the operator makes stands for a Prometheus that nothing else stands for.
		beside := map[string]bool{}
		for i := range list.Items {
			s := &list.Items[i]
			port, ok := portOf(s)
			if !ok || seen[s.Namespace] && s.Labels[labelOperated] != "" {
				continue
			}
			beside[s.Namespace] = true
			all = append(all, Candidate{s, port})
		}
		for namespace := range beside {
			seen[namespace] = true
		}
	}
	// On OpenShift each Prometheus knows a part, and what asks all of them is beside them.
	if slices.ContainsFunc(all, Candidate.isOpenShifts) {
		all = slices.DeleteFunc(all, func(c Candidate) bool {
			return strings.HasPrefix(c.service.Namespace, "openshift-") && !c.isOpenShifts()
		})
	}
	slices.SortStableFunc(all, func(a, b Candidate) int {
		return cmp.Or(cmp.Compare(a.rank(), b.rank()), strings.Compare(a.service.Namespace, b.service.Namespace), strings.Compare(a.service.Name, b.service.Name))
	})
	return all, nil
}

// rank is 0 for what asks all of several, and 1 for all others.
func (c Candidate) rank() int {
	if c.service.Labels[labelName] == namedThanos {
		return 0
	}
	return 1
}

// isOpenShifts reports whether it is what OpenShift has for the queries of all.
func (c Candidate) isOpenShifts() bool {
	return c.service.Namespace == "openshift-monitoring" && c.service.Labels[labelName] == namedThanos
}

// portOf is the port of a Service at which a Prometheus answers queries.
func portOf(s *corev1.Service) (corev1.ServicePort, bool) {
	for _, name := range []string{"web", "http-web", "http", "https"} {
		if i := slices.IndexFunc(s.Spec.Ports, func(p corev1.ServicePort) bool { return p.Name == name }); i >= 0 {
			return s.Spec.Ports[i], true
		}
	}
	if len(s.Spec.Ports) == 1 {
		return s.Spec.Ports[0], true
	}
	return corev1.ServicePort{}, false
}

// Address is the address of the Service inside the cluster.
func (c Candidate) Address() string {
	scheme := "http"
	if c.port.Name == "https" || c.service.Annotations[servedByTLS] != "" {
		scheme = "https"
	}
	return fmt.Sprintf("%s://%s.%s.svc:%d", scheme, c.service.Name, c.service.Namespace, c.port.Port)
}

// Settings are the arguments of helm upgrade that have the manager use it.
func (c Candidate) Settings() string {
	const own = "wva.prometheus."
	if c.isOpenShifts() {
		return "-f charts/workload-variant-autoscaler/values-openshift.yaml"
	}
	settings := "--set " + own + "baseURL=" + c.Address()
	if strings.HasPrefix(c.Address(), "http:") {
		settings += " --set " + own + "allowHTTP=true"
	}
	if slices.Contains(bundles, c.service.Labels[labelPartOf]) {
		settings += " --set " + own + "serviceAccountName=" + c.service.Name + " --set " + own + "monitoringNamespace=" + c.service.Namespace
		if release := c.service.Labels[labelRelease]; release != "" {
			settings += " --set wva.metrics.serviceMonitor.labels.release=" + release
		}
	}
	return settings
}

// Advice names the Services that look like a Prometheus, other than the one of the address that is used
// now, and what has the manager use one; empty where none is found.
func Advice(ctx context.Context, api client.Reader, now string) string {
	all, err := Candidates(ctx, api)
	if err != nil {
		return ""
	}
	var found []string
	for _, c := range all {
		if host := c.service.Name + "." + c.service.Namespace + ".svc"; !strings.Contains(now, "//"+host) && len(found) < mostCandidates {
			found = append(found, fmt.Sprintf("%s (`helm upgrade` with `%s` has the manager use it)", c.Address(), c.Settings()))
		}
	}
	if len(found) == 0 {
		return ""
	}
	return "these Services of the cluster look like a Prometheus: " + strings.Join(found, ", ")
}
