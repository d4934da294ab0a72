// Package install installs the chart with Helm's own library into a local cluster,
// upgrades it from the values of the published chart, rolls back and uninstalls. Pods do
// not run there, so it starts the real programs with the arguments, environment, files and
// service account that the pods would have had.
package install
