// Package limit says what each variant may have now: what fits on the nodes beside all that is
// expected, what quotas allow, what minReplicas and maxReplicas say, and what the behavior of scaleUp
// lets through. It keeps room for replicas that were asked for and hold no node.
//
// Read Round first, which holds the room of all models.
package limit
