package capacity

import (
	"fmt"
	"strings"
)

// Accelerator is the short, normalised type of a device, such as "H100" or
// "L40S". Product labels of vendors and clouds are mapped to it in package
// inventory and nowhere else. The empty string means unknown, never "any".
type Accelerator string

// Device says which devices are meant: their type and, where it matters, narrower
// forms of it.
type Device struct {
	// Accelerator is the type.
	Accelerator Accelerator
	// MemoryGiB is the memory of one device in GiB. 0 means any in a request, and unknown
	// in a device that is there.
	MemoryGiB int
	// Form is the way that the device is built in (SXM4, PCIE, NVL, OAM, ...). Empty means
	// any in a request, and unknown in a device that is there.
	Form string
}

// Covers reports whether devices that are described by have are some of those that d
// asks for. A type covers its narrower forms: A100 covers A100 with 80 GiB, but A100
// with 80 GiB covers no device whose memory is not known. The empty type covers none.
func (d Device) Covers(have Device) bool {
	return d.Accelerator != "" && d.Accelerator == have.Accelerator &&
		(d.MemoryGiB == 0 || nearly(d.MemoryGiB, have.MemoryGiB)) &&
		(d.Form == "" || sameForm(d.Form, have.Form))
}

// nearly allows a tenth, because a device reports less memory than it is sold with: 45 GiB
// of 48.
func nearly(want, have int) bool { return 10*max(want-have, have-want) <= want }

// sameForm also matches HBM3 with SXM: product names with the kind of memory mean the
// module that other names call SXM.
func sameForm(a, b string) bool {
	module := func(s string) bool { return strings.HasPrefix(s, "SXM") }
	return a == b || a == "HBM3" && module(b) || module(a) && b == "HBM3" || a == "SXM" && module(b)
}

// String is the device with everything that is known of it: "A100-80GB-SXM4".
func (d Device) String() string {
	s := string(d.Accelerator)
	if d.MemoryGiB > 0 {
		s += fmt.Sprintf("-%dGB", d.MemoryGiB)
	}
	if d.Form != "" {
		s += "-" + d.Form
	}
	return s
}

// Shape is what one replica takes from a cluster.
type Shape struct {
	// Accelerator is the type of every device of the replica. It is empty for a
	// replica without devices.
	Accelerator Accelerator
	// MemoryGiB and Form narrow the type as those of Device do; zero and empty mean
	// any.
	MemoryGiB int
	Form      string
	// Devices is the number of whole devices per pod.
	Devices int
	// Pods is the number of pods per replica: 1 unless it spans nodes.
	Pods int
	// MilliCPU is the CPU request per pod in thousandths of a core.
	MilliCPU int64
	// MemoryBytes is the memory request per pod in bytes.
	MemoryBytes int64
}

// Device is which devices the shape asks for.
func (s Shape) Device() Device {
	return Device{Accelerator: s.Accelerator, MemoryGiB: s.MemoryGiB, Form: s.Form}
}

// String renders the shape the way people write it: "4xH100", "2xA100-80GB".
func (s Shape) String() string {
	var b strings.Builder
	if s.Pods > 1 {
		fmt.Fprintf(&b, "%d pods of ", s.Pods)
	}
	if s.Devices == 0 {
		b.WriteString("no devices")
		return b.String()
	}
	name := s.Device().String()
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
