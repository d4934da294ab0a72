package config_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"llmd.ai/workload-variant-autoscaler/pkg/config"
)

func TestNamesOfConfigMaps(t *testing.T) {
	s := config.Static{SaturationConfigMap: "release-wva-saturation-scaling-config", ServiceClassConfigMap: "service-classes-config"}
	assert.Equal(t, []string{
		"release-wva-saturation-scaling-config", "wva-saturation-scaling-config", "saturation-scaling-config", "wva-capacity-scaling-config", "capacity-scaling-config",
	}, s.SaturationConfigMaps(), "one that was given counts first")
	assert.Equal(t, []string{"wva-service-classes-config", "service-classes-config", "wva-serviceclass", "serviceclass"}, s.ServiceClassConfigMaps())
}

func TestEachInstanceHasALeaseOfItsOwn(t *testing.T) {
	lease := func(instance string) string {
		return config.Static{ControllerInstance: instance, LeaderElection: config.LeaderElection{ID: "id"}}.Lease()
	}
	assert.Equal(t, "id", lease(""))
	assert.Equal(t, "id-blue", lease("blue"))
	assert.Regexp(t, "^id-team-a-[0-9a-f]{8}$", lease("Team_A"), "what a name may hold")
	assert.NotEqual(t, lease("Team_A"), lease("team_a"))
	assert.NotEqual(t, lease("team-a"), lease("team_a"))
}
