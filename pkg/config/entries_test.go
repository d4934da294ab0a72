package config

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestEntries(t *testing.T) {
	none, err := Entries(nil)
	require.NoError(t, err)
	assert.Empty(t, none)

	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "wva", Name: "classes"}, Data: map[string]string{"premium": "priority: 1"}}
	found, err := Entries(object)
	require.NoError(t, err)
	assert.Equal(t, object.Data, found)

	object.BinaryData = map[string][]byte{"free": {0xff, 0xfe}, "basic": {0xfe, 0xff}}
	found, err = Entries(object)
	require.EqualError(t, err, "ConfigMap wva/classes: binaryData has basic, free, which was made from a file that is not UTF-8: save the file as UTF-8 and make the ConfigMap anew")
	assert.Empty(t, found)
}
