package capacity

import (
	"fmt"
	"strings"
)

// Accelerator is the short, normalised type of a device, such as "H100" or
// "L40S". Product labels of vendors and clouds are mapped to it in package
// inventory and nowhere else. The empty string means unknown, never "any".
type Accelerator string

// Shape is what one replica takes from a cluster.
type Shape struct {
	// Accelerator is the type of every device of the replica. It is empty for a
	// replica without devices.
	Accelerator Accelerator
	// Devices is the number of whole devices per pod.
	Devices int
	// Pods is the number of pods per replica: 1 unless it spans nodes.
	Pods int
	// MilliCPU is the CPU request per pod in thousandths of a core.
	MilliCPU int64
	// MemoryBytes is the memory request per pod in bytes.
	MemoryBytes int64
}

// String renders the shape the way people write it: "4xH100".
func (s Shape) String() string {
	var b strings.Builder
	if s.Pods > 1 {
		fmt.Fprintf(&b, "%d pods of ", s.Pods)
	}
	if s.Devices == 0 {
		b.WriteString("no devices")
		return b.String()
	}
	name := s.Accelerator
	if name == "" {
		name = "unknown"
	}
	fmt.Fprintf(&b, "%dx%s", s.Devices, name)
	return b.String()
}

// Rate is a number of requests per second.
type Rate float64

// Cost is a price in a currency per hour. All costs of one cluster are in the
// same currency; the model only ever compares and adds them.
type Cost float64

// Tokens is a number of tokens. It is a real number because most of its uses
// are means.
type Tokens float64

// Milliseconds is a latency. Latencies are real numbers because they come out of
// formulas; instants and time-outs are of package time's types.
type Milliseconds float64

// TokenShape is the mean length of the requests of a load.
type TokenShape struct {
	// Input is the number of prompt tokens per request.
	Input Tokens
	// Output is the number of generated tokens per request.
	Output Tokens
}

// Known reports whether both lengths are positive, and so usable in a formula.
func (t TokenShape) Known() bool { return t.Input > 0 && t.Output > 0 }

// SLO is the promised latency of a service class: a request meets it when its
// time to first token is at most TTFT and its mean time per further token is at
// most ITL. Zero means that no promise was made for that latency.
type SLO struct {
	TTFT Milliseconds
	ITL  Milliseconds
}
