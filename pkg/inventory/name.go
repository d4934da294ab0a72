package inventory

import (
	"cmp"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	corev1 "k8s.io/api/core/v1"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// Name is what a product label, a cloud's label or a person says of an
// accelerator. The zero Name is unknown.
type Name struct {
	// Short is the normalised type: A100, L40S, MI300X, Gaudi2.
	Short capacity.Accelerator
	// MemoryGiB is the memory of the whole device in GiB, or 0 where nothing says.
	MemoryGiB int
	// Form is the way that the device is built in (SXM4, PCIE, NVL, OAM, HBM3,
	// MEGA), or empty.
	Form string
	// MIG is the profile of a slice such as "3g.40gb" (of other makers "cpx-nps4",
	// "core") or of a virtual device such as "10c", or empty for a whole device.
	MIG string
	// Shared is set for a device that several containers use at a time.
	Shared bool
	// Under is the last word of the resource that offers whole devices of this name
	// ("i915", "neurondevice") where their maker has several such resources and it is
	// not the first; else empty.
	Under string
	// Raw is the text that was normalised.
	Raw string
	// Unlisted is set when no rule knows the text, and Short is the text itself.
	Unlisted bool

	maker maker
}

// Known reports whether there is a name at all.
func (n Name) Known() bool { return n.Short != "" }

// Accelerator is the type that the capacity model counts by: the short name, and
// apart from it each kind of slice and of shared device, because neither can stand
// in for a whole device, and devices under another resource, because a pod that asks
// for one resource gets nothing of another.
func (n Name) Accelerator() capacity.Accelerator {
	if n.Short == "" {
		return ""
	}
	return n.Short + capacity.Accelerator(n.part())
}

// Device is what the capacity model knows of the device. A slice is told by its
// profile, so that the memory of the device that it was cut from is of no account.
func (n Name) Device() capacity.Device {
	d := capacity.Device{Accelerator: n.Accelerator(), MemoryGiB: n.MemoryGiB, Form: n.Form}
	if n.MIG != "" {
		d.MemoryGiB = 0
	}
	return d
}

// String is the name with everything that is known of it: "A100-80GB-SXM4".
func (n Name) String() string {
	return capacity.Device{Accelerator: n.Short, MemoryGiB: n.MemoryGiB, Form: n.Form}.String() + n.part()
}

// whole is the device that the name's part is of.
func (n Name) whole() Name {
	n.MIG, n.Shared, n.Under = "", false, ""
	return n
}

// part says which part of a device is meant, and which resource it comes by; nothing
// means all of it by the usual one.
func (n Name) part() string {
	part := ""
	switch {
	case n.MIG == "":
	case virtual.MatchString(n.MIG):
		part = "-" + strings.ToUpper(n.MIG)
	case n.MIG[0] >= '0' && n.MIG[0] <= '9' || n.MIG == invalidSlices:
		part = "-MIG-" + n.MIG
	default:
		part = "-" + strings.ToUpper(n.MIG)
	}
	if n.Under != "" {
		part += "-" + strings.ToUpper(n.Under)
	}
	if n.Shared {
		part += "-SHARED"
	}
	return part
}

// Covers reports whether a device named have is one of those that n asks for. A
// name covers the narrower ones: A100 covers A100-80GB and A100-SXM4-80GB, but
// A100-80GB covers no device whose memory is not known. A whole device is never
// covered by, nor covers, a slice or a shared one.
func (n Name) Covers(have Name) bool { return n.Device().Covers(have.Device()) }

// As is what the name means for devices that a pod asks for by the resource: of a
// resource that counts slices or shared devices, H100 means a slice or a share of an
// H100. It is an error when name and resource contradict each other.
func (n Name) As(resource corev1.ResourceName) (Name, error) {
	c, ok := conventionOf(resource)
	if !ok || !n.Known() {
		return n, nil
	}
	return n.counted(c, resource)
}

// invalidSlices is the profile that GPU discovery makes up for slices that are not
// all alike, or not there, where they should be.
const invalidSlices = "invalid"

var (
	// partSuffixes are what names end with that mean a part of a device.
	partSuffixes = [...]*regexp.Regexp{
		regexp.MustCompile(`^(.*)-MIG-([0-9]+[CG](?:\.[0-9]+[CG])?\.[0-9]+GB(?:[+.][A-Z0-9.]+|-ME(?:\.[A-Z]+)?)?|INVALID)$`),
		regexp.MustCompile(`^(.*)-([SDTQC]PX-NPS[0-9]+|CORE)$`),
		virtualSuffix,
	}
	// virtualSuffix is what NVIDIA's hypervisor hands out of a device, by its gigabytes and
	// the kind of work: 10C of an A100, 1-10C of a slice of one. Other makers' models may
	// end alike: HL-225B, Ascend910-910B.
	virtualSuffix = regexp.MustCompile(`^(.*?[0-9].*?)-((?:[0-9]-)?[0-9]{1,3}[QCAB](?:4|ME)?)$`)
	virtual       = regexp.MustCompile(`^(?:[0-9]-)?[0-9]{1,3}[qcab](?:4|me)?$`)
	underSuffix   = regexp.MustCompile(`-(` + strings.ToUpper(strings.Join(otherResources, "|")) + `)$`)
	memoryPart    = regexp.MustCompile(`(?:^|-)([0-9]{1,4})GI?B?(?:-|$)`)
	formPart      = regexp.MustCompile(`(?:^|-)(SXM[0-9]?|PCIE|NVL|OAM|HBM3E?|MEGA)(?:-|$)`)
)

// rule names a family of accelerators. Rules are tried in order, the most specific
// first; "$1" in short is the first group of the pattern.
type rule struct {
	pattern *regexp.Regexp
	short   string
	maker   maker
	// memoryOfHost is set where the gigabytes in the name are not the device's.
	memoryOfHost bool
}

func word(pattern string) *regexp.Regexp {
	return regexp.MustCompile(`(?:^|-)` + pattern + `(?:-|$)`)
}

var rules = []rule{
	{pattern: word(`RTX-?PRO-?(?:SERVER-)?([0-9]{4})`), short: "RTXPRO$1", maker: nvidia},
	{pattern: word(`QUADRO-?RTX-?([0-9]{4})`), short: "QuadroRTX$1", maker: nvidia},
	{pattern: word(`RTX-?([0-9]{4})-?(?:SFF-?)?ADA`), short: "RTX${1}ADA", maker: nvidia},
	{pattern: word(`RTX-(A[0-9]{4})`), short: "$1", maker: nvidia},
	{pattern: word(`RTX-?([0-9]{4})-?(TI|SUPER|D)?`), short: "RTX$1$2", maker: nvidia},
	// The letter is the cooling, or what the card is built for: HL-225H, HL-325L.
	{pattern: word(`(?:GAUDI-)?HL-?20[05][A-Z]?`), short: "Gaudi1", maker: habana},
	{pattern: word(`(?:GAUDI-)?HL-?22[58][A-Z]?`), short: "Gaudi2", maker: habana},
	{pattern: word(`(?:GAUDI-)?HL-?3[0-9]{2}[A-Z]?`), short: "Gaudi3", maker: habana},
	{pattern: word(`GAUDI-?([0-9])`), short: "Gaudi$1", maker: habana},
	{pattern: regexp.MustCompile(`^G([23])$`), short: "Gaudi$1", maker: habana},
	{pattern: word(`INFERENTIA-?([0-9]*)`), short: "Inferentia$1", maker: aws},
	{pattern: word(`TRAINIUM-?([0-9]*)`), short: "Trainium$1", maker: aws},
	{pattern: word(`TPU-?V5-?(?:LITE|E)(?:POD)?`), short: "TPUV5E", maker: google},
	{pattern: word(`TPU-?V?([0-9]+[A-Z]?)`), short: "TPUV$1", maker: google},
	{pattern: word(`MI(300|325|350|355)X?`), short: "MI${1}X", maker: amd},
	{pattern: word(`(MI[0-9]{2,3}[AX]?)`), short: "$1", maker: amd},
	{pattern: word(`(V(?:520|620|710))`), short: "$1", maker: amd},
	{pattern: word(`MAX-?([0-9]{4})`), short: "MAX$1", maker: intel},
	{pattern: word(`FLEX-?([0-9]{3})`), short: "FLEX$1", maker: intel},
	{pattern: word(`ASCEND-?([0-9]{3}[A-Z0-9]*(?:-[0-9]+)?)`), short: "ASCEND$1", maker: huawei},
	{pattern: word(`(MLU[0-9]{3})`), short: "$1", maker: cambricon},
	{pattern: word(`(G[BH][0-9]{3})`), short: "$1", maker: nvidia, memoryOfHost: true},
	{pattern: word(`((?:A|B|H|K|L|M|P|T|V)[0-9]{1,4}[GS]?)`), short: "$1", maker: nvidia},
}

// makers are words that say who made a device, or for which trade, and never which it is:
// no part of its name, whether a rule knows that or not.
var makers = map[string]bool{
	"NVIDIA": true, "TESLA": true, "GEFORCE": true, "GRID": true, "AMD": true, "INSTINCT": true, "RADEON": true, "INTEL": true,
	"HABANA": true, "GOOGLE": true, "AWS": true, "AMAZON": true, "HUAWEI": true, "CAMBRICON": true, "METAX": true, "QUALCOMM": true,
	"HYGON": true, "ILUVATAR": true, "MTHREADS": true, "ENFLAME": true, "KUNLUNXIN": true, "BIREN": true,
}

// noTypes are words that say that there is a device, and never which.
var noTypes = map[string]bool{"GPU": true, "TRUE": true, "FALSE": true, "NONE": true, "UNKNOWN": true}

// Normalize reads a product label's value, a cloud's name or what a person wrote.
// A text that no rule knows stays usable: it becomes its own short name in upper
// case. Normalising a name gives the same name. A text that names no type, such as
// the empty one or a maker's name, gives the zero Name.
func Normalize(raw string) Name {
	text := canonical(raw)
	n := Name{Raw: raw}
	text = n.cutParts(text)
	product := withoutNoTypes(text)
	if product == "" {
		return Name{Raw: raw}
	}
	for _, r := range rules {
		m := r.pattern.FindStringSubmatchIndex(product)
		if m == nil {
			continue
		}
		n.Short, n.maker = capacity.Accelerator(r.pattern.ExpandString(nil, r.short, product, m)), r.maker
		n.Form = firstGroup(formPart, product)
		if !r.memoryOfHost {
			n.MemoryGiB, _ = strconv.Atoi(firstGroup(memoryPart, product))
		}
		return n
	}
	n.Short, n.Unlisted = capacity.Accelerator(without(text, makers)), true
	return n
}

// canonical is the text in one spelling: upper case, words with one hyphen between
// them.
func canonical(raw string) string {
	return strings.Join(strings.FieldsFunc(strings.ToUpper(raw), func(r rune) bool {
		return r == '-' || r == '_' || unicode.IsSpace(r)
	}), "-")
}

// cutParts takes the suffixes that part gives off a canonical text, and notes them.
func (n *Name) cutParts(text string) string {
	for {
		if rest, ok := strings.CutSuffix(text, "-SHARED"); ok {
			n.Shared, text = true, rest
			continue
		}
		if m := underSuffix.FindStringSubmatchIndex(text); m != nil {
			n.Under, text = cmp.Or(n.Under, strings.ToLower(text[m[2]:m[3]])), text[:m[0]]
			continue
		}
		m := partOf(text)
		if m == nil {
			return text
		}
		if n.MIG == "" {
			n.MIG = profile(m[2])
		}
		text = m[1]
	}
}

// partOf is, after the text, what of it comes before a suffix that means a part, and
// what the suffix means; nil without one.
func partOf(text string) []string {
	for _, suffix := range partSuffixes {
		if m := suffix.FindStringSubmatch(text); m != nil && (suffix != virtualSuffix || makerOf(m[1]) == nvidia) {
			return m
		}
	}
	return nil
}

// makerOf is the maker of the product that a canonical text names.
func makerOf(text string) maker {
	product := withoutNoTypes(text)
	for i := range rules {
		if rules[i].pattern.MatchString(product) {
			return rules[i].maker
		}
	}
	return unknownMaker
}

// profile is the name of a kind of slices in one spelling. It is empty for the
// partition that is the whole device.
func profile(raw string) string {
	p := strings.ToLower(strings.NewReplacer("+", ".", "_", "-").Replace(raw))
	if strings.HasPrefix(p, "spx-") {
		return ""
	}
	return p
}

// withoutNoTypes is what of a canonical text may say which device it is.
func withoutNoTypes(text string) string { return without(without(text, makers), noTypes) }

// without is a canonical text without some words.
func without(text string, words map[string]bool) string {
	parts := strings.Split(text, "-")
	kept := parts[:0]
	for _, p := range parts {
		if !words[p] {
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
