// Manager is the autoscaler: it watches VariantAutoscaling objects and keeps the
// replicas of their targets at what their models need.
//
// It only puts things together: settings from flags, environment and file, the
// adapters, the controller and a manager of controller-runtime. Read newCommand
// first, then run.
package main
