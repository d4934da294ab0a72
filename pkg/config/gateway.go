package config

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Trusted are the namespaces whose gateways count for the models of all namespaces, sorted: those that
// were named, else those of the addresses that were given.
func (g Gateway) Trusted() []string {
	trusted := slices.Clone(g.Namespaces)
	if len(trusted) == 0 {
		for _, page := range g.MetricsURLs {
			if address, err := url.Parse(page); err == nil {
				trusted = append(trusted, ServiceNamespace(address.Hostname()))
			}
		}
	}
	slices.Sort(trusted)
	return slices.DeleteFunc(slices.Compact(trusted), func(namespace string) bool { return namespace == "" })
}

// ServiceNamespace is the namespace in the name of a Service: name.namespace.svc, with the cluster's
// domain or without. It is empty for any other host: name.namespace alone may as well be a domain.
func ServiceNamespace(host string) string {
	labels := strings.Split(host, ".")
	if len(labels) >= 3 && labels[2] == "svc" {
		return labels[1]
	}
	return ""
}

// namespaces are names of namespaces with commas between them.
func namespaces(field func(*Config) *[]string) form {
	return form{kind: KindList, set: func(c *Config, value string) error {
		var names []string
		for item := range strings.SplitSeq(value, ",") {
			item = strings.TrimSpace(item)
			if item == "" {
				continue
			}
			if len(validation.IsDNS1123Label(item)) > 0 {
				return fmt.Errorf("holds %q: write names of namespaces, with commas between them", item)
			}
			names = append(names, item)
		}
		*field(c) = names
		return nil
	}}
}
