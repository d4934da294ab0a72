package v1_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/config"
	configv1 "llmd.ai/workload-variant-autoscaler/pkg/apis/config/v1"
)

const header = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: AcceleratorPlacementArgs\n"

// decoder reads arguments as the scheduler does: strictly, into the internal type.
func decoder(t *testing.T) runtime.Decoder {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, config.AddToScheme(scheme))
	require.NoError(t, configv1.AddToScheme(scheme))
	return serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDecoder()
}

func TestArgsAsAUserWritesThem(t *testing.T) {
	names := &config.ConfigMapReference{Namespace: "system", Name: "accelerators"}
	cases := []struct {
		name, text string
		want       config.AcceleratorPlacementArgs
		wantErr    string
	}{
		{name: "left out", want: config.AcceleratorPlacementArgs{KeepOthersOffAcceleratorNodes: true, SpreadFirstReplicas: true}},
		{name: "off", text: "keepOthersOffAcceleratorNodes: false\nspreadFirstReplicas: false\n"},
		{name: "names of one's own", text: "acceleratorNames: {namespace: system, name: accelerators}\n",
			want: config.AcceleratorPlacementArgs{KeepOthersOffAcceleratorNodes: true, SpreadFirstReplicas: true, AcceleratorNames: names}},
		{name: "a slip of the pen", text: "keepOthersOfAcceleratorNodes: false\n", wantErr: `unknown field "keepOthersOfAcceleratorNodes"`},
		{name: "a slip inside", text: "acceleratorNames: {nameSpace: system, name: accelerators}\n", wantErr: `unknown field "acceleratorNames.nameSpace"`},
		{name: "a field twice", text: "acceleratorNames: {name: a, name: b}\n", wantErr: `key "name" already set`},
		{name: "no truth value", text: "keepOthersOffAcceleratorNodes: 3\n", wantErr: "cannot unmarshal number"},
		{name: "no reference", text: "acceleratorNames: accelerators\n", wantErr: "cannot unmarshal string"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, _, err := decoder(t).Decode([]byte(header+c.text), nil, nil)
			if c.wantErr != "" {
				require.ErrorContains(t, err, c.wantErr)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, &c.want, got)
		})
	}
}

func TestArgsConvertBothWays(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, config.AddToScheme(scheme))
	require.NoError(t, configv1.AddToScheme(scheme))
	in := &config.AcceleratorPlacementArgs{
		KeepOthersOffAcceleratorNodes: true,
		SpreadFirstReplicas:           true,
		AcceleratorNames:              &config.ConfigMapReference{Namespace: "system", Name: "accelerators"},
	}
	written, err := scheme.ConvertToVersion(in.DeepCopy(), configv1.SchemeGroupVersion)
	require.NoError(t, err)
	assert.Equal(t, &configv1.AcceleratorPlacementArgs{
		TypeMeta:                      metav1.TypeMeta{APIVersion: "kubescheduler.config.k8s.io/v1", Kind: "AcceleratorPlacementArgs"},
		KeepOthersOffAcceleratorNodes: new(true),
		SpreadFirstReplicas:           new(true),
		AcceleratorNames:              &configv1.ConfigMapReference{Namespace: "system", Name: "accelerators"},
	}, written)
	back, err := scheme.ConvertToVersion(written, config.SchemeGroupVersion)
	require.NoError(t, err)
	assert.Equal(t, in, back)
}
