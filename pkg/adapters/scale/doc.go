// Package scale reads and writes the replicas of any kind that has a scale
// subresource, through client-go's polymorphic scale client.
//
// It decides nothing. It writes the number that it is given with the resource version
// that the decision read, so it never overwrites a change of somebody else.
// Errors differ by type: NotFoundError, NotScalableError, ForbiddenError
// (which names the missing permission), DeniedError (of the cluster's admission) and
// ConflictError.
//
// Read Client first.
package scale
