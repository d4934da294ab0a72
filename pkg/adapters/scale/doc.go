// Package scale reads and writes the replicas of any kind that has a scale
// subresource, through client-go's polymorphic scale client.
//
// It decides nothing: it writes the number that it is given, under the resource
// version on which that number rests, and never over a change of somebody else.
// What fails is told apart by type: NotFoundError, NotScalableError, ForbiddenError
// (which names the missing rule) and ConflictError.
//
// Read Client first.
package scale
