// Package limit says what each variant may have now: what fits on the nodes beside all that is
// expected, what quotas allow, what minReplicas and maxReplicas say, and what the behavior of scaleUp
// lets through. It keeps room for replicas that were asked for and hold no node.
//
// Read Round first, which holds the room of all models. What grows asks MayReach (behavior.go), which has
// the policies of scaleUp and the limit of growth; Minimum and KeepOne alone go past it. minReplicas and
// maxReplicas are in bounds.go, the room of nodes and quotas is in room.go, and limits.go gives back what
// does not come up.
package limit
