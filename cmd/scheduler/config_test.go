package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/validation"
	"sigs.k8s.io/yaml"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/config"
	"llmd.ai/workload-variant-autoscaler/pkg/inventory"
	"llmd.ai/workload-variant-autoscaler/plugins/acceleratorplacement"
)

const profileName = "variant-scheduler"

// load reads the configuration of a folder of manifests/ as the program does: as the
// file that the ConfigMap is mounted as, or that it is.
func load(t *testing.T, folder string) *schedulerconfig.KubeSchedulerConfiguration {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("../../manifests", folder, "config.yaml"))
	require.NoError(t, err)
	text := string(content)
	var configMap corev1.ConfigMap
	if err := yaml.UnmarshalStrict(content, &configMap); err == nil && configMap.Kind == "ConfigMap" {
		require.Contains(t, configMap.Data, "config.yaml")
		text = configMap.Data["config.yaml"]
	}
	file := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	addArguments()
	cfg, err := options.LoadConfigFromFile(klog.Background(), file)
	require.NoError(t, err)
	require.NoError(t, validation.ValidateKubeSchedulerConfiguration(cfg))
	return cfg
}

// argsOf are the arguments of a plugin in a profile.
func argsOf(t *testing.T, profile schedulerconfig.KubeSchedulerProfile, plugin string) any {
	t.Helper()
	for _, c := range profile.PluginConfig {
		if c.Name == plugin {
			return c.Args
		}
	}
	t.Fatalf("the profile %s has no arguments of %s", profile.SchedulerName, plugin)
	return nil
}

func TestTheShippedConfigurationsAreRead(t *testing.T) {
	const namespace = "workload-variant-autoscaler-system"
	for folder, c := range map[string]struct {
		profiles         []string
		lease, namespace string
		ours             bool
	}{
		"scheduler":             {[]string{profileName}, "variant-scheduler", namespace, true},
		"scheduler-gang":        {[]string{profileName}, "variant-scheduler", namespace, true},
		"scheduler-one-process": {[]string{"default-scheduler", profileName}, "kube-scheduler", "kube-system", true},
		"stock-scheduler":       {[]string{"default-scheduler", profileName}, "kube-scheduler", "kube-system", false},
	} {
		t.Run(folder, func(t *testing.T) {
			if folder == "scheduler-gang" && len(gangPlugins()) == 0 {
				t.Skip("this build has no Coscheduling, whose arguments would stay unread")
			}
			cfg := load(t, folder)
			assert.True(t, cfg.LeaderElection.LeaderElect)
			assert.Equal(t, c.lease, cfg.LeaderElection.ResourceName)
			assert.Equal(t, c.namespace, cfg.LeaderElection.ResourceNamespace)
			require.Len(t, cfg.Profiles, len(c.profiles))
			for i, name := range c.profiles {
				assert.Equal(t, name, cfg.Profiles[i].SchedulerName)
			}
			packing := cfg.Profiles[len(cfg.Profiles)-1]
			require.NotNil(t, packing.PercentageOfNodesToScore)
			assert.EqualValues(t, 100, *packing.PercentageOfNodesToScore)
			fit := argsOf(t, packing, "NodeResourcesFit").(*schedulerconfig.NodeResourcesFitArgs)
			assert.Equal(t, schedulerconfig.MostAllocated, fit.ScoringStrategy.Type)
			devices := 0
			for _, r := range fit.ScoringStrategy.Resources {
				if inventory.IsDevice(corev1.ResourceName(r.Name)) {
					devices++
				}
			}
			assert.Equal(t, len(fit.ScoringStrategy.Resources)-1, devices, "all but CPU are devices that the model knows")
			spread := argsOf(t, packing, "PodTopologySpread").(*schedulerconfig.PodTopologySpreadArgs)
			assert.Equal(t, schedulerconfig.ListDefaulting, spread.DefaultingType)
			assert.Empty(t, spread.DefaultConstraints)
			if c.ours {
				for _, one := range cfg.Profiles {
					// Pods without devices go by every profile.
					assert.True(t, argsOf(t, one, acceleratorplacement.Name).(*config.AcceleratorPlacementArgs).KeepOthersOffAcceleratorNodes, one.SchedulerName)
				}
				assert.Equal(t, &config.AcceleratorPlacementArgs{
					KeepOthersOffAcceleratorNodes: true,
					SpreadFirstReplicas:           true,
					AcceleratorNames:              &config.ConfigMapReference{Namespace: namespace, Name: "workload-variant-autoscaler-accelerator-names"},
				}, argsOf(t, packing, acceleratorplacement.Name))
			}
		})
	}
}

// Everything that is in a configuration exists and agrees with the rest: the real
// scheduler is made of it.
func TestSchedulersAreMadeOfTheShippedConfigurations(t *testing.T) {
	for _, folder := range []string{"scheduler", "scheduler-one-process", "stock-scheduler"} {
		t.Run(folder, func(t *testing.T) {
			s := newSchedulerOf(t, folder)
			for i := range 4 {
				s.Cache.AddNode(klog.Background(), gpuNode(fmt.Sprintf("h%d", i), products[0], 8))
			}
			hosts := map[string]bool{}
			for i := range 8 {
				host, err := s.place(t, replica("h100", i, template(1, 1, 1)))
				require.NoError(t, err)
				hosts[host] = true
			}
			assert.Len(t, hosts, 1, "it packs")
			if folder != "scheduler" {
				require.Contains(t, s.Profiles, "default-scheduler")
				assert.NotEmpty(t, s.Profiles["default-scheduler"].ListPlugins().Score.Enabled)
			}
		})
	}
}

// One process places the pods without devices too, and no taint keeps them off the
// nodes with devices: the default profile needs the plugin for that.
func TestOneProcessKeepsPodsWithoutDevicesOffNodesWithDevices(t *testing.T) {
	// hosts is where eight pods without devices go, of which the plain node holds six.
	hosts := func(t *testing.T, s *realScheduler, profile string) (plain, withDevices int) {
		t.Helper()
		s.Cache.AddNode(klog.Background(), gpuNode("h0", products[0], 8))
		s.Cache.AddNode(klog.Background(), gpuNode("h1", products[0], 8))
		s.Cache.AddNode(klog.Background(), gpuNode("plain", "", 0))
		for i := range 8 {
			pod := replica("h100", i, template(0, 2, 10))
			pod.Spec.SchedulerName = profile
			if s.placeBy(t, pod) == "plain" {
				require.Zero(t, withDevices, "the plain node comes first")
				plain++
			} else {
				withDevices++
			}
		}
		return plain, withDevices
	}
	for _, profile := range []string{"default-scheduler", profileName} {
		t.Run(profile, func(t *testing.T) {
			plain, others := hosts(t, newSchedulerOf(t, "scheduler-one-process"), profile)
			assert.Equal(t, 6, plain)
			assert.Equal(t, 2, others, "where others have no room it is no reason to wait")
		})
	}
	t.Run("a default profile without the plugin", func(t *testing.T) {
		profiles := load(t, "scheduler-one-process").Profiles
		without(t, &profiles[0])
		sched, err := tryScheduler(t, profiles)
		require.NoError(t, err)
		s := &realScheduler{Scheduler: sched}
		s.Cache.AddNode(klog.Background(), gpuNode("h0", products[0], 8))
		s.Cache.AddNode(klog.Background(), gpuNode("plain", "", 0))
		filled := 0
		for i := range 6 {
			pod := replica("h100", i, template(0, 2, 10))
			pod.Spec.SchedulerName = "default-scheduler"
			if s.placeBy(t, pod) == "h0" {
				filled++
			}
		}
		assert.Positive(t, filled, "it fills nodes with devices: the plugin is what keeps them free")
	})
}

// without takes the plugin out of a profile.
func without(t *testing.T, p *schedulerconfig.KubeSchedulerProfile) {
	t.Helper()
	ours := func(c schedulerconfig.Plugin) bool { return c.Name == acceleratorplacement.Name }
	before := len(p.Plugins.MultiPoint.Enabled)
	p.Plugins.MultiPoint.Enabled = slices.DeleteFunc(p.Plugins.MultiPoint.Enabled, ours)
	p.Plugins.PostFilter.Enabled = slices.DeleteFunc(p.Plugins.PostFilter.Enabled, ours)
	require.Len(t, p.Plugins.MultiPoint.Enabled, before-1)
}

// The profiles of one process have one view of the nodes: what either placed is taken for
// both, pods with devices find the right accelerator by either, and no device is given
// twice, without any taint.
func TestOneProcessGivesNoDeviceTwice(t *testing.T) {
	s := newSchedulerOf(t, "scheduler-one-process")
	for i := range 2 {
		s.Cache.AddNode(klog.Background(), gpuNode(fmt.Sprintf("h%d", i), products[0], 8))
		s.Cache.AddNode(klog.Background(), gpuNode(fmt.Sprintf("a%d", i), products[1], 8))
	}
	both := []string{"default-scheduler", profileName}
	taken := map[string]int64{}
	for i := range 16 {
		devices := int64(1 + i%2)
		for v, kind := range []string{"h100", "a100"} {
			pod := replica(kind, 10*i+v, template(devices, 0, 0))
			pod.Spec.SchedulerName = both[(i/2+v)%2]
			host, err := s.tryBy(t, pod)
			if err != nil {
				assert.Greater(t, taken[kind[:1]+"0"]+taken[kind[:1]+"1"], 16-devices, "it is refused only where too few are free")
				continue
			}
			assert.Equal(t, kind[:1], host[:1], "by either profile it goes to its accelerator")
			taken[host] += devices
		}
	}
	assert.Equal(t, map[string]int64{"h0": 8, "h1": 8, "a0": 8, "a1": 8}, taken, "all devices are given, each once")
}

func TestWrongArgumentsStopTheScheduler(t *testing.T) {
	profiles := load(t, "scheduler").Profiles
	for i := range profiles[0].PluginConfig {
		if args, ok := profiles[0].PluginConfig[i].Args.(*config.AcceleratorPlacementArgs); ok {
			args.AcceleratorNames.Namespace = ""
		}
	}
	_, err := tryScheduler(t, profiles)
	require.ErrorContains(t, err, "pluginConfig.AcceleratorPlacement.acceleratorNames.namespace: Required value")
}

func TestTheCommandSaysWhatItIs(t *testing.T) {
	command := newCommand()
	assert.Equal(t, "scheduler", command.Name())
	assert.Contains(t, command.Long, "AcceleratorPlacement")
}

// One step of the plugin's ranks has to be worth more than everything that all other
// plugins together can say, or they would undo the packing.
func TestTheOtherPluginsOnlyBreakTies(t *testing.T) {
	const step = 5
	for _, folder := range []string{"scheduler", "scheduler-one-process"} {
		t.Run(folder, func(t *testing.T) {
			ours, others := int64(0), int64(0)
			// The profile as it is once the defaults of this release are in it.
			for _, plugin := range newSchedulerOf(t, folder).profile.ListPlugins().Score.Enabled {
				if plugin.Name == acceleratorplacement.Name {
					ours = int64(plugin.Weight) * step
				} else {
					others += int64(plugin.Weight) * fwk.MaxScore
				}
			}
			assert.Greater(t, ours, others)
			text, err := os.ReadFile("../../manifests/scheduler/config.yaml")
			require.NoError(t, err)
			_, said, _ := strings.Cut(string(text), "scores together (")
			said, _, _ = strings.Cut(said, ")")
			assert.Equal(t, fmt.Sprint(others), said, "what the manifest's comment says")
		})
	}
}
