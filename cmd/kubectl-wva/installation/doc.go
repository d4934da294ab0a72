// Package installation finds the manager that is installed in a cluster, by the labels that
// the chart and the manifests give it, and works out its settings as it does itself: from
// the arguments and the environment of its Deployment and from its ConfigMap.
//
// So whoever asks for a name of a ConfigMap, for a price or for the address of Prometheus
// gets what counts in the cluster, whatever the release is called. Read Find.
package installation
