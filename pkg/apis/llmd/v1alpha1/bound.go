package v1alpha1

import "unicode/utf8"

// The sizes of status.decision, in characters and items, that the schema allows.
const (
	maxSteps   = 16
	maxWord    = 64
	maxDetail  = 256
	maxMessage = 1024
)

// Bound cuts the decision to the sizes that the schema allows, so that a long
// sentence never makes the API server refuse the whole status. The last steps stay,
// because they settled the number.
func (d *Decision) Bound() {
	d.Reason = cut(d.Reason, maxWord)
	d.Message = cut(d.Message, maxMessage)
	d.Binds = cut(d.Binds, maxDetail)
	d.Alternative = cut(d.Alternative, maxDetail)
	if surplus := len(d.Steps) - maxSteps; surplus > 0 {
		d.Steps = d.Steps[surplus:]
	}
	for i := range d.Steps {
		step := &d.Steps[i]
		step.Stage = cut(step.Stage, maxWord)
		step.Reason = cut(step.Reason, maxWord)
		step.Detail = cut(step.Detail, maxDetail)
	}
}

// Bound cuts the text of the placement to the size that the schema allows.
func (p *Placement) Bound() { p.SlotsBound = cut(p.SlotsBound, maxDetail) }

// cut keeps whole characters and ends with an ellipsis where it had to cut.
func cut(text string, size int) string {
	if utf8.RuneCountInString(text) <= size {
		return text
	}
	return string([]rune(text)[:size-1]) + "…"
}
