// Package floor proves what the oldest Kubernetes is that the chart may ask for: the
// version whose API server understands the rules of the kind VariantAutoscaling.
package floor
