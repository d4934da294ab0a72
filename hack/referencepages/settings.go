package main

import (
	"fmt"
	"strings"

	"llmd.ai/workload-variant-autoscaler/pkg/config"
)

// settings is the page of the manager's settings, in the order in which the table of
// keys has them.
func settings() (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, `# Settings of the manager

%s

The name is that of the variable of the environment and of the entry in the ConfigMap. The flag is the same name in small letters with dashes:
`+"`GLOBAL_OPT_INTERVAL`"+` is `+"`--global-opt-interval`"+`. A flag counts before a variable, and a variable before the ConfigMap. [Configure the manager](../operate/configure.md) says more.

**Restart** says whether a change needs a restart of the manager.

| name | default | restart | what it does |
|---|---|---|---|
`, generated)
	for _, key := range config.Keys() {
		restart := "no"
		if key.Static {
			restart = "yes"
		}
		help := cell(key.Help)
		if key.Secret {
			help += " A secret: it is never shown."
		}
		if len(key.Aliases) > 0 {
			help += " Flag also: " + code("-"+"-"+strings.Join(key.Aliases, ", --")) + "."
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", code(key.Name), code(key.Default), restart, help)
	}
	return b.String(), nil
}
