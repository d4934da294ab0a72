package config_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"llmd.ai/workload-variant-autoscaler/pkg/config"
)

func TestWhereAnAddressIs(t *testing.T) {
	for address, want := range map[string]string{
		"":                                     "",
		"https://p:9090/prometheus":            "https://p:9090/prometheus",
		"https://p:9090/api?key=secret#secret": "https://p:9090/api",
		"https://secret@p":                     "https://p",
		"https://me:secret@p?":                 "https://p",
		"p:9090?key=secret":                    "p:9090",
		"https://prom etheus/?key=secret":      "(an address that cannot be read, which is not shown)",
		"https://p:secret/":                    "(an address that cannot be read, which is not shown)",
	} {
		assert.Equal(t, want, config.Location(address))
	}
}
