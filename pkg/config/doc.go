// Package config is the one configuration of the manager: which settings exist,
// where each value comes from, whether it is valid, and what may change while the
// manager runs.
//
// A value is taken from the first place that has it: a flag that was given, the
// environment, the configuration file, the default. Static settings are read once;
// dynamic settings follow the configuration file, and the saturation thresholds
// follow their ConfigMap.
//
// It must never read a file, the environment or the cluster itself: its callers
// hand it flags, a lookup function and bytes. A setting exists only if something
// takes effect from it; unknown settings are reported and change nothing.
//
// Read Config first, then Load, Config.Update and ParseSaturation. The table of
// all settings is Keys.
package config
