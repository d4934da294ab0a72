package serving

// BatchSource says who told how many requests a server takes into service at once.
type BatchSource string

// The sources. What nobody stated is a guess about the engine's own choice, and never says alone
// that a replica is full.
const (
	BatchAssumed BatchSource = ""
	BatchStated  BatchSource = "the server's arguments"
)
