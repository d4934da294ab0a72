package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Entries are the entries of a ConfigMap, none of one that is not there. Kubernetes keeps those that
// are not UTF-8 apart, as binaryData; where they are, settings would be lost in silence.
func Entries(object *corev1.ConfigMap) (map[string]string, error) {
	if object == nil {
		return nil, nil //nolint:nilnil // most of them are not there
	}
	if len(object.BinaryData) > 0 {
		return nil, fmt.Errorf("ConfigMap %s/%s: binaryData has %s, which was made from a file that is not UTF-8: save the file as UTF-8 and make the ConfigMap anew",
			object.Namespace, object.Name, strings.Join(slices.Sorted(maps.Keys(object.BinaryData)), ", "))
	}
	return object.Data, nil
}
