package validation

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"
	apivalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/v1alpha2"
	"llmd.ai/workload-variant-autoscaler/pkg/llamastack/child"
)

// What is here would be refused by the API server when a child is made of it. The author of
// the object reads it at once instead of in a condition.

// longestName leaves room for what is appended to it, within the 63 characters of the name of a
// Service. The names of the other children may be longer.
const longestName = 63 - len("-service")

// checkName takes the names that a Service may begin with. One that is to be generated is
// not there yet.
func checkName(name string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(name) > longestName {
		errs = append(errs, field.TooLong(path, name, longestName))
	} else if name != "" && len(apivalidation.IsDNS1035Label(name)) > 0 {
		errs = append(errs, field.Invalid(path, name, fmt.Sprintf("the Service %s-service could not be made: use lower-case letters, digits and '-' alone, and a letter first", name)))
	}
	return errs
}

func checkExpose(n *v1alpha2.Networking, path *field.Path) field.ErrorList {
	if n == nil {
		return nil
	}
	exposure, err := v1alpha2.ReadExposure(n.Expose)
	if err != nil {
		return field.ErrorList{invalid(path, string(n.Expose.Raw), err)}
	}
	host := exposure.Hostname
	wrong := apivalidation.IsDNS1123Subdomain(host)
	if strings.HasPrefix(host, "*.") {
		wrong = apivalidation.IsWildcardDNS1123Subdomain(host)
	}
	if host != "" && (len(wrong) > 0 || len(apivalidation.IsValidIP(path, host)) == 0) {
		return field.ErrorList{field.Invalid(path.Child("hostname"), host, "no Ingress takes it as its host: write a name such as demo.example.com")}
	}
	return nil
}

func checkWorkload(w *v1alpha2.Workload, path *field.Path) field.ErrorList {
	if w == nil {
		return nil
	}
	var errs field.ErrorList
	if s := w.Storage; s != nil && s.Size != nil && s.Size.Sign() <= 0 {
		errs = append(errs, field.Invalid(path.Child("storage", "size"), s.Size.String(), "a volume has more than nothing: write a size such as 10Gi"))
	}
	if b := w.PodDisruptionBudget; b != nil {
		path := path.Child("podDisruptionBudget")
		errs = append(errs, checkPods(b.MinAvailable, path.Child("minAvailable"))...)
		errs = append(errs, checkPods(b.MaxUnavailable, path.Child("maxUnavailable"))...)
	}
	return append(errs, checkVolumes(w, path.Child("overrides"))...)
}

// checkVolumes takes each name and each place once, beside those of the server's own volume.
func checkVolumes(w *v1alpha2.Workload, path *field.Path) field.ErrorList {
	if w.Overrides == nil {
		return nil
	}
	var errs field.ErrorList
	names, places := map[string]bool{child.VolumeStorage: true}, map[string]bool{child.MountPath(*w): true}
	for i, volume := range w.Overrides.Volumes {
		if names[volume.Name] {
			errs = append(errs, field.Invalid(path.Child("volumes").Index(i).Child("name"), volume.Name, "the pods have another volume of this name: give it another one"))
		}
		names[volume.Name] = true
	}
	for i, mount := range w.Overrides.VolumeMounts {
		if places[mount.MountPath] {
			errs = append(errs, field.Invalid(path.Child("volumeMounts").Index(i).Child("mountPath"), mount.MountPath, "another volume is mounted there: choose another path"))
		}
		places[mount.MountPath] = true
	}
	return errs
}

// checkPods takes a number of pods, or a share of them.
func checkPods(pods *intstr.IntOrString, path *field.Path) field.ErrorList {
	if pods == nil {
		return nil
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(pods, 100, true)
	if err == nil && n >= 0 && (pods.Type == intstr.Int || n <= 100) {
		return nil
	}
	var value any = pods.IntVal
	if pods.Type == intstr.String {
		value = pods.StrVal
	}
	return field.ErrorList{field.Invalid(path, value, "write a number of pods, such as 1, or a share of them, such as 50%")}
}
