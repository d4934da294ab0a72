// Package carrying writes a value into the annotations of an object, one annotation for each
// field of it, and reads it back.
//
// Server-side apply decides by annotation: what it takes away of a value that has one annotation
// as a whole comes back with the next conversion. So the annotations of a value with a
// field less are those of the whole value without some, and no other: this must stay.
// Nothing here knows what the fields mean. Read Write first.
package carrying
