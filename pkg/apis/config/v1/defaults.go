package v1

import (
	"k8s.io/apimachinery/pkg/runtime"
)

func addDefaultingFuncs(scheme *runtime.Scheme) error {
	return RegisterDefaults(scheme)
}

// SetDefaults_AcceleratorPlacementArgs fills in what was left out. The generator
// finds it by its name.
func SetDefaults_AcceleratorPlacementArgs(args *AcceleratorPlacementArgs) {
	if args.KeepOthersOffAcceleratorNodes == nil {
		args.KeepOthersOffAcceleratorNodes = new(true)
	}
	if args.SpreadFirstReplicas == nil {
		args.SpreadFirstReplicas = new(true)
	}
}
