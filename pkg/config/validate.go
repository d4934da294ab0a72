package config

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"time"
)

// validate checks each setting that parsing alone cannot. Places are the names of
// the places by key, empty for those that could not be read: of these, and of what is
// compared with them, nothing more is said.
func (c Config) validate(places map[string]string) []error {
	var errs []error
	wrong := func(key, format string, args ...any) {
		text := fmt.Sprintf(format, args...)
		if places[key] == "" || mentionsUnread(text, places) {
			return
		}
		errs = append(errs, fmt.Errorf("%s %s", places[key], text))
	}
	c.validateSource(wrong)
	c.validateLeaderElection(wrong)
	c.validateNames(wrong)
	c.validateTimes(wrong)
	if c.PodNamespace == "" {
		wrong("POD_NAMESPACE", "is empty: name the namespace of the manager")
	}
	if c.Webhook.PlacePods && c.Webhook.Scheduler == "" {
		wrong("WEBHOOK_SCHEDULER_NAME", "is empty: name the scheduler of the variants' pods, or set WEBHOOK_PLACE_PODS to false")
	}
	if c.MetricsWindow < time.Second {
		wrong("PROMETHEUS_METRICS_WINDOW", "is %s: write at least 1s, and at least twice the scrape interval of Prometheus", c.MetricsWindow)
	}
	f := c.Freshness
	if f.Ageing < f.Fresh {
		wrong("PROMETHEUS_METRICS_CACHE_STALE_THRESHOLD", "is %s: write at least PROMETHEUS_METRICS_CACHE_FRESH_THRESHOLD (%s)", f.Ageing, f.Fresh)
	}
	if f.Stale < f.Ageing {
		wrong("PROMETHEUS_METRICS_CACHE_UNAVAILABLE_THRESHOLD", "is %s: write at least PROMETHEUS_METRICS_CACHE_STALE_THRESHOLD (%s)", f.Stale, f.Ageing)
	}
	return errs
}

// mentionsUnread reports whether a text compares with a setting that could not be read.
func mentionsUnread(text string, places map[string]string) bool {
	for key, place := range places {
		if place == "" && strings.Contains(text, key+" (") {
			return true
		}
	}
	return false
}

func (c Config) validateSource(wrong func(key, format string, args ...any)) {
	if c.MetricsSource == SourcePrometheus {
		c.validatePrometheus(wrong)
		if len(c.Gateway.MetricsURLs) == 0 {
			return
		}
	}
	// Two scrapes are the least that a rate needs.
	if c.PodMetrics.ScrapeInterval > c.MetricsWindow/2 {
		wrong("POD_METRICS_SCRAPE_INTERVAL", "is %s: write at most half of PROMETHEUS_METRICS_WINDOW (%s)", c.PodMetrics.ScrapeInterval, c.MetricsWindow)
	}
}

// apiPath is the end of an address of one page of Prometheus. Where more follows, as in a path through
// the API server of a cluster, it is another API.
var apiPath = regexp.MustCompile(`/api/v1(/(query|query_range))?/?$`)

func (c Config) validatePrometheus(wrong func(key, format string, args ...any)) {
	p := c.Prometheus
	address, err := url.Parse(p.BaseURL)
	switch {
	case p.BaseURL == "":
		wrong("PROMETHEUS_BASE_URL", "is not set: give the address of Prometheus, such as https://prometheus.monitoring:9090")
	case err != nil || address.Hostname() == "" || (address.Scheme != "https" && address.Scheme != "http"):
		wrong("PROMETHEUS_BASE_URL", "is %q: write an address such as https://prometheus.monitoring:9090", Location(p.BaseURL))
	case apiPath.MatchString(address.Path):
		wrong("PROMETHEUS_BASE_URL", "is %q: leave out /api/v1 and what follows", Location(p.BaseURL))
	case address.Scheme == "http" && !p.AllowHTTP:
		wrong("PROMETHEUS_BASE_URL", "is %q, which has no TLS: use https, or set PROMETHEUS_ALLOW_HTTP to true", Location(p.BaseURL))
	}
	if p.ClientCertPath != "" && p.ClientKeyPath == "" {
		wrong("PROMETHEUS_CLIENT_KEY_PATH", "is not set, and PROMETHEUS_CLIENT_CERT_PATH is: set both or none")
	}
	if p.ClientKeyPath != "" && p.ClientCertPath == "" {
		wrong("PROMETHEUS_CLIENT_CERT_PATH", "is not set, and PROMETHEUS_CLIENT_KEY_PATH is: set both or none")
	}
}

func (c Config) validateLeaderElection(wrong func(key, format string, args ...any)) {
	l := c.LeaderElection
	if !l.Enabled {
		return
	}
	if l.ID == "" {
		wrong("LEADER_ELECTION_ID", "is empty: name the lease, or set LEADER_ELECT to false")
	}
	if l.LeaseDuration <= l.RenewDeadline {
		wrong("LEADER_ELECTION_LEASE_DURATION", "is %s: write more than LEADER_ELECTION_RENEW_DEADLINE (%s)", l.LeaseDuration, l.RenewDeadline)
	}
	// client-go adds a jitter of up to 20 % to the retry period and refuses a
	// deadline that leaves no room for it.
	if l.RenewDeadline <= l.RetryPeriod+l.RetryPeriod/5 {
		wrong("LEADER_ELECTION_RENEW_DEADLINE", "is %s: write more than 1.2 times LEADER_ELECTION_RETRY_PERIOD (%s)", l.RenewDeadline, l.RetryPeriod)
	}
}
