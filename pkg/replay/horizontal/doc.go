// Package horizontal is Kubernetes' HorizontalPodAutoscaler (HPA) as a value in virtual time:
// how many replicas a metric asks for, and what of that one round does.
//
// The rules are those of k8s.io/kubernetes, pkg/controller/podautoscaler (horizontal.go and
// replica_calculator.go) of Kubernetes 1.36. test/hpa runs that controller beside this one on
// random fleets and expects the same replicas in every round. Where kubernetes.io/docs says
// something else, the controller counts.
//
// It never reads a clock, and knows no metric and no object.
//
// Read Autoscaler and its Reconcile first, then AverageReplicas and SharedReplicas.
package horizontal
