// Package demo is the main job on a whole cluster in one command: it starts the
// cluster, installs the autoscaler and its scheduler as a user would, sends
// traffic to two models, and reports what was decided, placed and served.
//
// It starts the parts, sends the traffic and observes. It never takes part in what it
// shows: replicas are changed only by the autoscaler and pods placed only by the
// scheduler, each with the permissions that the manifests grant. Everything that
// it starts ends with it.
//
// Read Options and scenario (what is run) first, then run (the order of things);
// observer is where the numbers of the report come from.
package demo
