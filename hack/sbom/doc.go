// Sbom writes what programs were linked from, as a CycloneDX document: every module with
// its version and checksum, as the programs themselves carry them. The same programs give
// the same bytes: it has no time and no serial number.
package main
