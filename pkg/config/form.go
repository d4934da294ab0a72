package config

import (
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

func text(field func(*Config) *string) form {
	return form{kind: KindText, set: func(c *Config, value string) error {
		*field(c) = value
		return nil
	}}
}

func boolean(field func(*Config) *bool) form {
	return form{kind: KindBool, set: func(c *Config, value string) error {
		parsed, err := strconv.ParseBool(strings.ToLower(value))
		if err != nil {
			return fmt.Errorf("is %q: write true or false", value)
		}
		*field(c) = parsed
		return nil
	}}
}

func duration(field func(*Config) *time.Duration) form {
	return form{kind: KindDuration, set: func(c *Config, value string) error {
		parsed, err := time.ParseDuration(value)
		if err != nil {
			return fmt.Errorf("is %q: write a duration with its unit, such as 60s or 5m", value)
		}
		if parsed <= 0 {
			return fmt.Errorf("is %q: write a duration above zero", value)
		}
		*field(c) = parsed
		return nil
	}}
}

// durationOrNone is a duration of which 0 means none.
func durationOrNone(field func(*Config) *time.Duration) form {
	return form{kind: KindDuration, set: func(c *Config, value string) error {
		parsed, err := time.ParseDuration(value)
		if err != nil || parsed < 0 {
			return fmt.Errorf("is %q: write a duration with its unit, such as 60s or 5m, or 0 for none", value)
		}
		*field(c) = parsed
		return nil
	}}
}

// mostCount is more than any cluster has of anything, and small enough to reckon with.
const mostCount = 1_000_000

func count(field func(*Config) *int) form {
	return form{kind: KindText, set: func(c *Config, value string) error {
		parsed, err := strconv.Atoi(value)
		if err != nil || parsed < 0 || parsed > mostCount {
			return fmt.Errorf("is %q: write a whole number from 0 to %d", value, mostCount)
		}
		*field(c) = parsed
		return nil
	}}
}

// choice is one of a few words.
func choice(set func(*Config, string), words ...string) form {
	return form{kind: KindText, set: func(c *Config, value string) error {
		word := strings.ToLower(value)
		if !slices.Contains(words, word) {
			return fmt.Errorf("is %q: write %s", value, strings.Join(words, " or "))
		}
		set(c, word)
		return nil
	}}
}

// quantile is one above the median: who sizes for less than that plans to fail.
func quantile(field func(*Config) *float64) form {
	return form{kind: KindShare, set: func(c *Config, value string) error {
		parsed, err := strconv.ParseFloat(value, 64)
		if err != nil || !(parsed >= 0.5 && parsed < 1) {
			return fmt.Errorf("is %q: write a quantile from 0.5 to below 1, such as 0.85", value)
		}
		*field(c) = parsed
		return nil
	}}
}

// share is a part of a whole, neither none nor all of it.
func share(field func(*Config) *float64) form {
	return form{kind: KindShare, set: func(c *Config, value string) error {
		parsed, err := strconv.ParseFloat(value, 64)
		if err != nil || !(parsed > 0 && parsed < 1) {
			return fmt.Errorf("is %q: write a share above 0 and below 1, such as 0.99 for the 99th percentile", value)
		}
		*field(c) = parsed
		return nil
	}}
}

func port(field func(*Config) *int) form {
	return form{kind: KindPort, set: func(c *Config, value string) error {
		parsed, err := strconv.ParseUint(value, 10, 16)
		if err != nil || parsed == 0 {
			return fmt.Errorf("is %q: write the number of a port, from 1 to 65535", value)
		}
		*field(c) = int(parsed)
		return nil
	}}
}

// secret is a text that nobody may see.
func secret(field func(*Config) *string) form {
	return form{kind: KindText, secret: true, set: func(c *Config, value string) error {
		*field(c) = strings.TrimSpace(value)
		return nil
	}}
}

// verbosities are the words for a verbosity.
var verbosities = map[string]int{"error": 0, "warn": 1, "info": 2, "debug": 4}

// mostVerbose is the greatest verbosity that shows more than the one below it.
const mostVerbose = 10

func verbosity(field func(*Config) *int) form {
	return form{kind: KindText, set: func(c *Config, value string) error {
		level, ok := verbosities[strings.ToLower(value)]
		if !ok {
			var err error
			if level, err = strconv.Atoi(value); err != nil || level < 0 || level > mostVerbose {
				return fmt.Errorf("is %q: write error, warn, info or debug, or a number from 0 to %d", value, mostVerbose)
			}
		}
		*field(c) = level
		return nil
	}}
}

// metricsPath is the page of an address that names none.
const metricsPath = "/metrics"

// noCredentials is said of an address that is not quoted, because it may hold a password.
const noCredentials = "an address with an @: leave credentials out, a bearer token is read from a file"

// address is one address.
func address(field func(*Config) *string) form {
	return form{kind: KindText, address: true, set: func(c *Config, value string) error {
		if strings.Contains(value, "@") {
			return errors.New("is " + noCredentials)
		}
		*field(c) = value
		return nil
	}}
}

// shown is a value as everybody may see it.
func (k Key) shown(value string) string {
	if k.Secret && value != "" {
		return "(a secret, which is not shown)"
	}
	if k.address && strings.Contains(value, "@") {
		return "(an address with an @, which is not shown)"
	}
	if k.address {
		return located(value)
	}
	return value
}

// same reports whether two values say the same: true and True, 60s and 1m.
func (k Key) same(a, b string) bool {
	if a == b {
		return true
	}
	var x, y Config
	return k.set(&x, a) == nil && k.set(&y, b) == nil && reflect.DeepEqual(x, y)
}

// addresses are pages with commas between them.
func addresses(field func(*Config) *[]string) form {
	return form{kind: KindList, address: true, set: func(c *Config, value string) error {
		var pages []string
		for item := range strings.SplitSeq(value, ",") {
			item = strings.TrimSpace(item)
			if item == "" {
				continue
			}
			address, err := url.Parse(item)
			if strings.Contains(item, "@") {
				return errors.New("holds " + noCredentials)
			}
			if err != nil || address.Hostname() == "" || (address.Scheme != "https" && address.Scheme != "http") {
				return fmt.Errorf("holds %q: write addresses such as http://epp.gateway:9090/metrics, with commas between them", Location(item))
			}
			if strings.Trim(address.Path, "/") == "" {
				address.Path = metricsPath
			}
			if page := address.String(); !slices.Contains(pages, page) {
				pages = append(pages, page)
			}
		}
		*field(c) = pages
		return nil
	}}
}
