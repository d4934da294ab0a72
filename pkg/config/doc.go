// Package config is the one configuration of the manager: which settings exist,
// where each value comes from, whether it is valid, and what may change while the
// manager runs.
//
// A value is taken from the first place that has it: a flag that was given, the
// environment, the main ConfigMap (an entry of its own, then config.yaml; without that
// the file of the command line), the default. Static settings are read once; dynamic
// settings follow the ConfigMap. Saturation thresholds, service
// classes, prices of accelerators and leave to scale to zero follow ConfigMaps of their
// own, each of which is taken whole or not at all.
//
// It must never read a file, the environment or the cluster itself: its callers
// hand it flags, a lookup function and bytes. Every setting has an effect. Unknown
// settings, and published ones that have none here (WithoutEffect), are reported and change
// nothing.
//
// Read Config first, then Load, Config.Update, and the parser of each ConfigMap:
// ParseSaturation, ParseServiceClasses, ParseUnitCosts, ParseScaleToZero. Dynamic.Promise
// says what a model is promised, and Dynamic.IdleOf whether it may scale to zero. Keys is
// the table of all settings.
package config
