// Package config holds the arguments of the scheduler plugin, as the plugin takes
// them: every field has its value. Package v1 is what a user writes, with defaults
// for what is left out.
//
// The arguments belong to the group of the scheduler's own configuration, so that
// they stand in its pluginConfig. Read AcceleratorPlacementArgs.
//
// +k8s:deepcopy-gen=package
// +groupName=kubescheduler.config.k8s.io
package config
