package main

import (
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strings"
)

// The fields that are used of https://cyclonedx.org/docs/1.5/json.
type (
	bom struct {
		Format     string      `json:"bomFormat"`
		Spec       string      `json:"specVersion"`
		Version    int         `json:"version"`
		Metadata   metadata    `json:"metadata"`
		Components []component `json:"components"`
	}
	metadata struct {
		Component component `json:"component"`
	}
	component struct {
		Type    string `json:"type"`
		Name    string `json:"name"`
		Version string `json:"version"`
		PURL    string `json:"purl,omitempty"`
		Hashes  []hash `json:"hashes,omitempty"`
	}
	hash struct {
		Algorithm string `json:"alg"`
		Content   string `json:"content"`
	}
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: sbom VERSION PROGRAM...")
		os.Exit(2)
	}
	if err := write(os.Stdout, os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

// write lists the modules of all programs together.
func write(to io.Writer, version string, programs []string) error {
	const name = "workload-variant-autoscaler"
	found := map[string]component{}
	for _, program := range programs {
		info, err := buildinfo.ReadFile(program)
		if err != nil {
			return err
		}
		found["stdlib"] = component{Type: "library", Name: "stdlib", Version: info.GoVersion, PURL: "pkg:golang/stdlib@" + strings.TrimPrefix(info.GoVersion, "go")}
		for _, module := range info.Deps {
			c, err := describe(module)
			if err != nil {
				return fmt.Errorf("%s: %w", program, err)
			}
			found[c.PURL] = c
		}
	}
	document := bom{Format: "CycloneDX", Spec: "1.5", Version: 1, Metadata: metadata{component{Type: "application", Name: name, Version: version}}}
	for _, c := range found {
		document.Components = append(document.Components, c)
	}
	slices.SortFunc(document.Components, func(a, b component) int { return strings.Compare(a.PURL, b.PURL) })
	encoder := json.NewEncoder(to)
	encoder.SetIndent("", "  ")
	return encoder.Encode(document)
}

// describe is the module that was really linked: its replacement where it has one.
func describe(module *debug.Module) (component, error) {
	if module.Replace != nil {
		module = module.Replace
	}
	c := component{Type: "library", Name: module.Path, Version: module.Version, PURL: "pkg:golang/" + module.Path + "@" + module.Version}
	// "h1:" is the SHA-256 of the module's files, in base64.
	sum, ok := strings.CutPrefix(module.Sum, "h1:")
	if !ok {
		return c, nil
	}
	raw, err := base64.StdEncoding.DecodeString(sum)
	if err != nil {
		return c, fmt.Errorf("checksum of module %s: %w", module.Path, err)
	}
	c.Hashes = []hash{{"SHA-256", hex.EncodeToString(raw)}}
	return c, nil
}
