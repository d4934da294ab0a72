package configuration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"sigs.k8s.io/yaml"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/v1alpha2"
)

// document is a configuration as data: what is not known here stays as it is.
type document map[string]any

// parse reads YAML. Numbers keep their digits.
func parse(text []byte) (document, error) {
	asJSON, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(asJSON))
	decoder.UseNumber()
	var c document
	if err := decoder.Decode(&c); err != nil {
		return nil, err
	}
	if c == nil {
		return nil, fmt.Errorf("it is empty")
	}
	return c, nil
}

// render writes the document with sorted keys and sorted APIs. Lists keep their order.
func (c document) render() ([]byte, error) {
	if apis := c.apis(); apis != nil {
		slices.Sort(apis)
		c["apis"] = apis
	}
	asJSON, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	return yaml.JSONToYAML(asJSON)
}

// CheckOverride says what is wrong with a whole configuration that a user gives, as far
// as every server would refuse it.
func CheckOverride(text []byte) error {
	c, err := parse(text)
	if err != nil {
		return fmt.Errorf("config.yaml is no YAML map: %w", err)
	}
	_, err = c.version()
	return err
}

// version is 1 or 2, written as a number or as text.
func (c document) version() (int, error) {
	var text string
	switch v := c["version"].(type) {
	case nil:
		return 0, failed(ReasonUnsupportedVersion, "the configuration has no version: 1 or 2 is expected")
	case json.Number:
		text = v.String()
	case string:
		text = v
	}
	number, err := strconv.ParseFloat(text, 64)
	if err != nil || number != 1 && number != 2 {
		return 0, failed(ReasonUnsupportedVersion, "the configuration has the version %v: 1 or 2 is expected", c["version"])
	}
	return int(number), nil
}

// child is a map below the document, which is made where there is none.
func child(of map[string]any, key string) map[string]any {
	if found, ok := of[key].(map[string]any); ok {
		return found
	}
	made := map[string]any{}
	of[key] = made
	return made
}

// items is a list in the map, nothing where there is none.
func items(of map[string]any, key string) []any {
	list, _ := of[key].([]any)
	return list
}

// textOf is a text in an entry of a list, empty where there is none.
func textOf(entry any, key string) string {
	fields, _ := entry.(map[string]any)
	text, _ := fields[key].(string)
	return text
}

// apis are the APIs that the server offers; nil where it offers all that have providers.
func (c document) apis() []string {
	var apis []string
	switch list := c["apis"].(type) {
	case []string:
		apis = list
	case []any:
		apis = make([]string, 0, len(list))
		for _, api := range list {
			if name, ok := api.(string); ok {
				apis = append(apis, name)
			}
		}
	}
	return apis
}

func (c document) hasAPI(api string) bool { return slices.Contains(c.apis(), api) }

func (c document) providers(api string) []any { return items(child(c, "providers"), api) }

func (c document) countProviders() int {
	count := 0
	for api := range child(c, "providers") {
		count += len(c.providers(api))
	}
	return count
}

// gated is an ID that is empty unless a variable is set: ${env.OLLAMA_URL:+ollama}.
var gated = regexp.MustCompile(`^\$\{env\.[A-Z0-9_]+:\+(.*)\}$`)

// innerID is the ID within a gate, or the ID itself.
func innerID(id string) (inner string, isGated bool) {
	if match := gated.FindStringSubmatch(id); match != nil {
		return match[1], true
	}
	return id, false
}

// merge replaces the entries of a list that have the same ID, where they are, and appends
// the others in their order.
func merge(list, more []any, field string) []any {
	merged := slices.Clone(list)
	for _, entry := range more {
		id := textOf(entry, field)
		at := slices.IndexFunc(merged, func(old any) bool {
			inner, _ := innerID(textOf(old, field))
			return inner == id
		})
		if at < 0 {
			merged = append(merged, entry)
		} else {
			merged[at] = entry
		}
	}
	return merged
}

// setServer says where the server listens and how many processes it has.
func (c document) setServer(spec *v1alpha2.LlamaStackDistributionSpec) {
	if n := spec.Networking; n != nil && n.Port != 0 {
		child(c, "server")["port"] = n.Port
	}
	if w := spec.Workload; w != nil && w.Workers != nil {
		child(c, "server")["workers"] = *w.Workers
	}
}

// ProviderIDs are the IDs of the providers of an API in a configuration, without the
// variables that some depend on; none where it cannot be read.
func ProviderIDs(text []byte, api string) []string {
	c, err := parse(text)
	if err != nil {
		return nil
	}
	var ids []string
	for _, entry := range c.providers(api) {
		id, _ := innerID(textOf(entry, "provider_id"))
		ids = append(ids, id)
	}
	return ids
}
