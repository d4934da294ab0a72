package modelserver

import "strings"

// ServedNames are the names under which a model server serves its model, as its command
// line has them: the served names, else the model itself. They are what clients ask for
// and what the label model_name of the server's metrics says. Nil means that the command
// line does not tell them all: it names no model, has a variable that is not filled in, or
// adds adapters or a file of arguments.
func ServedNames(command []string) []string {
	var words []string
	for _, argument := range command {
		words = append(words, strings.FieldsFunc(argument, separates)...)
	}
	var served, model []string
	for i, word := range words {
		name, value, given := strings.Cut(strings.ReplaceAll(strings.TrimLeft(word, "-"), "_", "-"), "=")
		if given {
			_, value, _ = strings.Cut(word, "=")
		}
		// No word is looked at again for each that stands before it: there may be very many.
		next := words[i+1 : min(i+2, len(words))]
		switch {
		case word == "serve":
			model = first(valuesAt(next, value, given))
		case !strings.HasPrefix(word, "--"):
		case name == "served-model-name":
			served = valuesAt(words[i+1:], value, given)
		case name == "model" || name == "model-path":
			model = first(valuesAt(next, value, given))
		case name == "lora-modules" || name == "lora-paths" || name == "enable-lora" || name == "config":
			return nil
		}
	}
	if len(served) == 0 {
		served = model
	}
	if strings.Contains(strings.Join(served, ""), "$") {
		return nil
	}
	return served
}

func first(values []string) []string { return values[:min(1, len(values))] }

// valuesAt are the values of a flag: the one in its own word, else the words up to the next
// flag. SGLang takes several in one word.
func valuesAt(after []string, value string, given bool) (values []string) {
	if given {
		after = []string{value}
	}
	for _, word := range after {
		if strings.HasPrefix(word, "-") {
			break
		}
		values = append(values, strings.FieldsFunc(word, func(r rune) bool { return r == ',' })...)
	}
	return values
}
