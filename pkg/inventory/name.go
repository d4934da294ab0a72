package inventory

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// Name is what a product label, a cloud's label or a person says of an
// accelerator. The zero Name is unknown.
type Name struct {
	// Short is the normalised type: A100, L40S, MI300X, Gaudi2.
	Short capacity.Accelerator
	// MemoryGiB is the device's memory, or 0 where nothing says.
	MemoryGiB int
	// Form is the way that the device is built in (SXM4, PCIE, NVL, OAM, HBM3,
	// MEGA), or empty.
	Form string
	// MIG is the profile of a slice such as "3g.40gb", or empty for a whole device.
	MIG string
	// Shared is set for a device that several containers use at a time.
	Shared bool
	// Raw is the text that was normalised.
	Raw string
	// Unlisted is set when no rule knows the text, and Short is the text itself.
	Unlisted bool
}

// Known reports whether there is a name at all.
func (n Name) Known() bool { return n.Short != "" }

// Accelerator is the type that the capacity model counts by: the short name, and
// apart from it each kind of slice and of shared device, because neither can stand
// in for a whole device.
func (n Name) Accelerator() capacity.Accelerator {
	a := n.Short
	if a == "" {
		return ""
	}
	if n.MIG != "" {
		a += capacity.Accelerator("-MIG-" + n.MIG)
	}
	if n.Shared {
		a += "-SHARED"
	}
	return a
}

// String is the name with everything that is known of it: "A100-80GB-SXM4".
func (n Name) String() string {
	s := string(n.Short)
	if n.MemoryGiB > 0 {
		s += fmt.Sprintf("-%dGB", n.MemoryGiB)
	}
	if n.Form != "" {
		s += "-" + n.Form
	}
	if n.MIG != "" {
		s += "-MIG-" + n.MIG
	}
	if n.Shared {
		s += "-SHARED"
	}
	return s
}

// Covers reports whether a device named have is one of those that n asks for. A
// name covers the narrower ones: A100 covers A100-80GB and A100-SXM4-80GB, but
// A100-80GB covers no device whose memory is not known. A whole device is never
// covered by, nor covers, a slice or a shared one.
func (n Name) Covers(have Name) bool {
	return n.Short != "" && n.Short == have.Short && n.MIG == have.MIG && n.Shared == have.Shared &&
		(n.MemoryGiB == 0 || n.MIG != "" || nearly(n.MemoryGiB, have.MemoryGiB)) &&
		(n.Form == "" || sameForm(n.Form, have.Form))
}

// nearly allows a tenth, because a device's own report of its memory leaves out
// what it keeps for itself: 45 GiB of 48.
func nearly(want, have int) bool {
	return 10*max(want-have, have-want) <= want
}

// sameForm knows that a product name with the kind of memory (HBM3) is the module
// that other names call SXM.
func sameForm(a, b string) bool {
	module := func(s string) bool { return strings.HasPrefix(s, "SXM") }
	return a == b || a == "HBM3" && module(b) || module(a) && b == "HBM3" || a == "SXM" && module(b)
}

var (
	sharedSuffix = regexp.MustCompile(`-SHARED$`)
	migSuffix    = regexp.MustCompile(`-MIG-([0-9]+[CG](?:\.[0-9]+C)?\.[0-9]+GB(?:\+[A-Z0-9.]+)?)$`)
	memoryPart   = regexp.MustCompile(`(?:^|-)([0-9]{1,4})GI?B?(?:-|$)`)
	formPart     = regexp.MustCompile(`(?:^|-)(SXM[0-9]?|PCIE|NVL|OAM|HBM3E?|MEGA)(?:-|$)`)
)

// rule names a family of accelerators. Rules are tried in order, the most specific
// first; "$1" in short is the first group of the pattern.
type rule struct {
	pattern *regexp.Regexp
	short   string
	// memoryOfHost is set where the gigabytes in the name are not the device's.
	memoryOfHost bool
}

func word(pattern string) *regexp.Regexp {
	return regexp.MustCompile(`(?:^|-)` + pattern + `(?:-|$)`)
}

var rules = []rule{
	{pattern: word(`RTX-?PRO-?(?:SERVER-)?([0-9]{4})`), short: "RTXPRO$1"},
	{pattern: word(`QUADRO-?RTX-?([0-9]{4})`), short: "QuadroRTX$1"},
	{pattern: word(`RTX-?([0-9]{4})-?(?:SFF-?)?ADA`), short: "RTX${1}ADA"},
	{pattern: word(`RTX-(A[0-9]{4})`), short: "$1"},
	{pattern: word(`RTX-?([0-9]{4})-?(TI|SUPER|D)?`), short: "RTX$1$2"},
	{pattern: word(`(?:GAUDI-)?HL-?20[05]`), short: "Gaudi1"},
	{pattern: word(`(?:GAUDI-)?HL-?22[58]B?`), short: "Gaudi2"},
	{pattern: word(`(?:GAUDI-)?HL-?3[0-9]{2}`), short: "Gaudi3"},
	{pattern: word(`GAUDI-?([0-9])`), short: "Gaudi$1"},
	{pattern: regexp.MustCompile(`^G([23])$`), short: "Gaudi$1"},
	{pattern: word(`INFERENTIA-?([0-9]*)`), short: "Inferentia$1"},
	{pattern: word(`TRAINIUM-?([0-9]*)`), short: "Trainium$1"},
	{pattern: word(`TPU-?V5-?(?:LITE|E)`), short: "TPUV5E"},
	{pattern: word(`TPU-?V?([0-9]+[A-Z]?)`), short: "TPUV$1"},
	{pattern: word(`MI(300|325|350|355)X?`), short: "MI${1}X"},
	{pattern: word(`(MI[0-9]{2,3}[AX]?)`), short: "$1"},
	{pattern: word(`MAX-?([0-9]{4})`), short: "MAX$1"},
	{pattern: word(`FLEX-?([0-9]{3})`), short: "FLEX$1"},
	{pattern: word(`(G[BH][0-9]{3})`), short: "$1", memoryOfHost: true},
	{pattern: word(`((?:A|B|H|K|L|M|P|T|V)[0-9]{1,4}[GS]?)`), short: "$1"},
}

// vendorWords say who made a device and never which.
var vendorWords = map[string]bool{
	"NVIDIA": true, "TESLA": true, "GEFORCE": true, "AMD": true, "INSTINCT": true, "RADEON": true, "INTEL": true,
}

// Normalize reads a product label's value, a cloud's name or what a person wrote.
// A text that no rule knows stays usable: it becomes its own short name in upper
// case. Normalising a short name gives the same short name. The empty text gives
// the zero Name.
func Normalize(raw string) Name {
	text := strings.ToUpper(strings.TrimSpace(raw))
	text = strings.Trim(strings.NewReplacer("_", "-", " ", "-").Replace(text), "-")
	n := Name{Raw: raw}
	if sharedSuffix.MatchString(text) {
		n.Shared, text = true, strings.TrimSuffix(text, "-SHARED")
	}
	if m := migSuffix.FindStringSubmatch(text); m != nil {
		n.MIG, text = strings.ToLower(m[1]), migSuffix.ReplaceAllString(text, "")
	}
	if text == "" {
		return Name{Raw: raw}
	}
	product := withoutVendor(text)
	for _, r := range rules {
		m := r.pattern.FindStringSubmatchIndex(product)
		if m == nil {
			continue
		}
		n.Short = capacity.Accelerator(r.pattern.ExpandString(nil, r.short, product, m))
		n.Form = firstGroup(formPart, product)
		if !r.memoryOfHost {
			n.MemoryGiB, _ = strconv.Atoi(firstGroup(memoryPart, product))
		}
		return n
	}
	n.Short, n.Unlisted = capacity.Accelerator(text), true
	return n
}

func withoutVendor(text string) string {
	parts := strings.Split(text, "-")
	kept := parts[:0]
	for _, p := range parts {
		if !vendorWords[p] {
			kept = append(kept, p)
		}
	}
	return strings.Join(kept, "-")
}

func firstGroup(pattern *regexp.Regexp, text string) string {
	if m := pattern.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return ""
}
