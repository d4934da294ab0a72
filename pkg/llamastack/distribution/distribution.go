package distribution

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/v1alpha2"
)

// Custom is the name of a distribution that is given by its image.
const Custom = "custom"

//go:embed registry.json
var registryFile []byte

//go:embed base
var bases embed.FS

// registry has the image of each name. The file is part of the program, so that an
// error in it shows in every test.
var registry = func() map[string]string {
	images := map[string]string{}
	if err := json.Unmarshal(registryFile, &images); err != nil {
		panic(err)
	}
	return images
}()

// Names are the known distributions, sorted.
func Names() []string { return slices.Sorted(maps.Keys(registry)) }

// Images are the images of the known distributions by name, with those that the overrides
// replace.
func Images(overrides map[string]string) map[string]string {
	images := maps.Clone(registry)
	for name := range images {
		if image := overrides[name]; image != "" {
			images[name] = image
		}
	}
	return images
}

// Resolved is what an object's distribution stands for.
type Resolved struct {
	// Name is the name of the distribution, or Custom.
	Name string
	// Image is what runs.
	Image string
	// Base is the configuration of the image, nil where it is not known.
	Base []byte
}

// Resolve finds the image of a distribution, and the configuration that it comes with. An
// image that is given counts as it is; the overrides replace the images of known names.
func Resolve(d v1alpha2.Distribution, overrides map[string]string) (Resolved, error) {
	switch {
	case d.Image != "":
		return Resolved{Name: Custom, Image: d.Image}, nil
	case d.Name == "":
		return Resolved{}, fmt.Errorf("spec.distribution has neither name nor image: set one of them")
	}
	image, ok := Images(overrides)[d.Name]
	if !ok {
		return Resolved{}, Unknown(d.Name)
	}
	base, err := bases.ReadFile("base/" + d.Name + ".yaml")
	if err != nil {
		return Resolved{}, fmt.Errorf("the configuration of the distribution %q: %w", d.Name, err)
	}
	return Resolved{Name: d.Name, Image: image, Base: base}, nil
}

// Unknown is the error about a name that is none of a distribution.
func Unknown(name string) error {
	return fmt.Errorf("unknown distribution %q: use one of %s, or give an image", name, strings.Join(Names(), ", "))
}

// reference is an image as a container runtime takes it: a name with at most a registry
// before it, and a tag or a digest or both behind it.
var reference = regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]+)?/)?[a-z0-9]+([._/-]+[a-z0-9]+)*(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(@[a-z0-9]+:[0-9a-f]{32,})?$`)

// ParseOverrides reads a YAML map from names to images. The error names all that cannot be
// used.
func ParseOverrides(text string) (map[string]string, error) {
	var written map[string]any
	if err := yaml.Unmarshal([]byte(text), &written); err != nil {
		return nil, fmt.Errorf("image-overrides is no map from names to images: %w", err)
	}
	overrides := map[string]string{}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(written)) {
		image, ok := written[name].(string)
		if !ok || !reference.MatchString(image) {
			errs = append(errs, fmt.Errorf("image-overrides: %v of %q is no image", written[name], name))
			continue
		}
		if _, known := registry[name]; !known {
			errs = append(errs, fmt.Errorf("image-overrides: %w", Unknown(name)))
			continue
		}
		overrides[name] = image
	}
	return overrides, errors.Join(errs...)
}
