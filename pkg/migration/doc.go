// Package migration turns objects of earlier forms into the present ones: an object that
// lists the accelerators of a model into one object for each, and the autoscalers that
// follow it into one for each of those.
//
// It turns documents into documents: it reads no file and touches no cluster, and the same
// documents give the same result. What is of the present form stays as it is, so that
// turning twice gives what turning once gives. What has no place in the present form is an
// error that names the document, the object and the field: nothing is lost in silence.
//
// Read Convert first, then Document and Conversion.
package migration
