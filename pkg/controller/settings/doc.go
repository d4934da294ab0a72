// Package settings puts into force what ConfigMaps say while the manager runs.
//
// A Follower follows those beside the manager: the settings, the thresholds, the service
// classes, the prices, the sleep of models and the names of accelerators. Locals are those that
// namespaces have for themselves. One that cannot be used changes nothing: the last good one
// stays, and an event on it says why, once for each of its versions.
//
// What an entry means, and whether it is valid, says package config. It must never put half of
// a ConfigMap into force but for what a restart is needed for, which it names.
package settings
