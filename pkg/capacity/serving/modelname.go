package serving

import (
	"slices"
	"strconv"
	"strings"
)

// Bytes per number of weights, with the scales and zero points of their groups.
const (
	bytesOf8Bit = 1
	// AWQ, and GPTQ as it is usual: 4 bits and 20 for each group of 128.
	bytesOf4Bit = 0.52
	// NVFP4 has 8 bits for each 16 numbers; the others of these have at most that.
	bytesOfFP4 = 0.5625
)

// precisions are the words of a name that say how its weights are stored.
var precisions = map[string]float64{
	"bf16": plainBytes, "fp16": plainBytes, "bfloat16": plainBytes, "float16": plainBytes,
	"fp8": bytesOf8Bit, "w8a8": bytesOf8Bit, "w8a16": bytesOf8Bit, "int8": bytesOf8Bit, "8bit": bytesOf8Bit,
	"awq": bytesOf4Bit, "w4a16": bytesOf4Bit, "int4": bytesOf4Bit,
	"4bit": bytesOfFP4, "nvfp4": bytesOfFP4, "fp4": bytesOfFP4, "mxfp4": bytesOfFP4,
}

// methods are the values of --quantization that say how many bytes weights take, be
// it that the server makes them so or that they come so. Others, such as gptq and
// compressed-tensors, leave it to the files.
var methods = map[string]float64{
	"fp8": bytesOf8Bit, "ptpc-fp8": bytesOf8Bit, "fbgemm-fp8": bytesOf8Bit, "modelopt": bytesOf8Bit, "w8a8-int8": bytesOf8Bit, "w8a8-fp8": bytesOf8Bit,
	"awq": bytesOf4Bit, "awq-marlin": bytesOf4Bit,
	"bitsandbytes": bytesOfFP4, "modelopt-fp4": bytesOfFP4,
}

// decorations are words of a name that change nothing of what is reckoned here.
var decorations = []string{
	"meta", "instruct", "chat", "it", "pt", "hf", "base", "thinking", "dynamic", "block", "quantized", "bnb", "gptq",
}

// spelled is a model's name in pieces.
type spelled struct {
	// words are those that tell models apart, with dates such as 2407.
	words []string
	// bytes are those of a weight, 0 where the name does not say; vague is set when it
	// says that they are few and not how few.
	bytes float64
	vague bool
}

// spell takes a name apart: the last part of a path, without what decorates it.
func spell(name string) spelled {
	name = strings.ToLower(strings.TrimRight(name, "/"))
	name = name[strings.LastIndexByte(name, '/')+1:]
	var s spelled
	gptq := false
	for word := range strings.FieldsFuncSeq(name, func(r rune) bool { return r == '-' || r == '_' || r == ' ' || r == ':' }) {
		word = strings.TrimPrefix(word, "quantized.")
		gptq = gptq || word == "gptq" || word == "bnb"
		if b, ok := precisions[word]; ok {
			// The words of one name complete each other; of two the greater is safe.
			s.bytes = max(s.bytes, b)
		} else if !slices.Contains(decorations, word) && !isNumber(word, "v0.") && !isNumber(word, "g") {
			s.words = append(s.words, word)
		}
	}
	s.vague = gptq && s.bytes == 0
	return s
}

// isNumber says whether a word is the beginning and a number, such as v0.1.
func isNumber(word, beginning string) bool {
	rest, ok := strings.CutPrefix(word, beginning)
	return ok && rest != "" && strings.Trim(rest, "0123456789.") == ""
}

// isDate says whether a word is a month of this century or a day: 2407, 0324.
func isDate(word string) bool {
	return len(word) == 4 && (isNumber(word, "2") || isNumber(word, "0"))
}

// key is the name by which published and sameAs know the model.
func (s spelled) key(dates bool) string {
	words := s.words
	if !dates {
		words = slices.DeleteFunc(slices.Clone(words), isDate)
	}
	return strings.Join(words, "-")
}

// figures finds what was published of the model.
func (s spelled) figures() (ModelFigures, bool) {
	for _, dates := range [...]bool{true, false} {
		key := s.key(dates)
		if s.bytes == bytesOf8Bit {
			if m, ok := published[key+"-fp8"]; ok {
				return m, true
			}
		}
		for _, same := range sameAs {
			if _, ok := published[key]; ok {
				break
			}
			if rest, ok := strings.CutPrefix(key, same[0]); ok {
				key = same[1] + rest
				break
			}
		}
		if m, ok := published[key]; ok {
			return m, true
		}
	}
	return ModelFigures{}, false
}

// size is the number of parameters that the name says: 70b, 500m, 8x7b, of which
// the product is the most that it can be. It is 0 when none or several are said.
func (s spelled) size() float64 {
	size := 0.0
	for _, word := range s.words {
		n := sizeOf(word)
		if n > 0 && size > 0 {
			return 0
		}
		size = max(size, n)
	}
	return size
}

func sizeOf(word string) float64 {
	unit, number := 1e9, strings.TrimSuffix(word, "b")
	if number == word {
		unit, number = 1e6, strings.TrimSuffix(word, "m")
	}
	times, each, several := strings.Cut(number, "x")
	if !several {
		times, each = "1", times
	}
	if number == word || strings.Trim(times, "0123456789") != "" || strings.Trim(each, "0123456789.") != "" {
		return 0
	}
	n, err := strconv.Atoi(times)
	x, sizeErr := strconv.ParseFloat(each, 64)
	const most = 1e14
	if size := float64(n) * x * unit; err == nil && sizeErr == nil && size <= most {
		return size
	}
	return 0
}

// FiguresOf are the figures of the model with this name, such as
// meta-llama/Llama-3.1-8B-Instruct-FP8, as a server with these arguments holds it.
//
// A model that is not published here has the parameters that its name says and no
// figures of its cache. None are guessed from its size: of models with 7 billion
// parameters, Llama 2 keeps 512 KiB for each token and Qwen2.5 56.
func FiguresOf(name string, a Arguments) ModelFigures {
	s := spell(name)
	m, listed := s.figures()
	if !listed {
		m = ModelFigures{Parameters: s.size(), WeightBytes: plainBytes, CacheBytes: plainBytes}
	}
	plain := 0.0
	switch a.Numbers {
	case "", "auto", "half", "float16", "bfloat16":
		plain = plainBytes
	case "float", "float32":
		plain = 2 * plainBytes
	}
	m.WeightBytes = s.weightBytes(m.WeightBytes, plain, a.Quantization)
	switch {
	case plain == 0 || a.CacheNumbers == "fp8_ds_mla":
		m.CacheBytes = 0
	case a.CacheNumbers == "" || a.CacheNumbers == "auto":
		m.CacheBytes = plain
	case strings.HasPrefix(a.CacheNumbers, "fp8"):
		m.CacheBytes = bytesOf8Bit
	case a.CacheNumbers != "bfloat16" && a.CacheNumbers != "float16":
		m.CacheBytes = 0
	}
	return m
}

// weightBytes are the bytes of a weight: what the name says, else those in which the
// model was published, if it is quantised as it comes, else what the server is told;
// 0 means unknown.
func (s spelled) weightBytes(native, plain float64, quantization string) float64 {
	// A name may round what the model was published in: mxfp4, fp8.
	const alike = 1.25
	switch {
	case s.vague || plain == 0:
		return 0
	case native != plainBytes && (s.bytes == 0 || s.bytes <= native && native <= alike*s.bytes):
		return native
	case s.bytes > 0 && s.bytes < plainBytes:
		return s.bytes
	case quantization == "":
		return plain
	}
	return methods[strings.ReplaceAll(quantization, "_", "-")]
}
