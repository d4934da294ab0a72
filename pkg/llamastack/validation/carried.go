package validation

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/v1alpha2"
	"llmd.ai/workload-variant-autoscaler/pkg/llamastack/configuration"
)

// APIs are the names that spec.disabled may have.
var APIs = []v1alpha2.API{
	"agents", "batches", "datasetio", "eval", "files", "inference", "post_training", "postTraining", "responses", "safety", "scoring",
	"telemetry", "tool_runtime", "toolRuntime", "vector_io", "vectorIo",
}

// checkDisabled also has the names of the schema, because an annotation of an object of
// v1alpha1 may have others.
func checkDisabled(disabled []v1alpha2.API, declared []provider, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, api := range disabled {
		if !slices.Contains(APIs, api) {
			errs = append(errs, field.NotSupported(path.Index(i), api, APIs))
			continue
		}
		for _, p := range declared {
			if p.group.API == configuration.CanonicalAPI(api) {
				errs = append(errs, field.Invalid(path.Index(i), api, fmt.Sprintf("the API is disabled and has a provider in %s: remove one of them", p.path)))
			}
		}
	}
	return errs
}

// checkStorage has what the schema says, for the same reason, and reads the address of
// Redis.
func checkStorage(s *v1alpha2.StateStorage, path *field.Path) field.ErrorList {
	if s == nil {
		return nil
	}
	var errs field.ErrorList
	if kv := s.KV; kv != nil {
		at := path.Child("kv")
		redis := kv.Type == v1alpha2.KVRedis
		switch {
		case redis && kv.Endpoint == "":
			errs = append(errs, field.Required(at.Child("endpoint"), "storage.kv.type redis needs storage.kv.endpoint: set it, such as redis://redis.default.svc:6379"))
		case redis:
			if _, _, err := configuration.Redis(kv.Endpoint); err != nil {
				// What was written may hold a password.
				errs = append(errs, field.Invalid(at.Child("endpoint"), field.OmitValueType{}, err.Error()))
			}
		case kv.Endpoint != "":
			errs = append(errs, field.Forbidden(at.Child("endpoint"), "storage.kv.endpoint is only for storage.kv.type redis: remove it, or set the type"))
		}
		if !redis && kv.Password != nil {
			errs = append(errs, field.Forbidden(at.Child("password"), "storage.kv.password is only for storage.kv.type redis: remove it, or set the type"))
		}
	}
	if sql := s.SQL; sql != nil {
		at := path.Child("sql", "connectionString")
		switch postgres := sql.Type == v1alpha2.SQLPostgres; {
		case postgres && sql.ConnectionString == nil:
			errs = append(errs, field.Required(at, "storage.sql.type postgres needs storage.sql.connectionString: name the Secret that has it"))
		case !postgres && sql.ConnectionString != nil:
			errs = append(errs, field.Forbidden(at, "storage.sql.connectionString is only for storage.sql.type postgres: remove it, or set the type"))
		}
	}
	return errs
}

// largestCarried bounds what of an object is in annotations when it is read as v1alpha1, in bytes. The
// API server bounds all annotations of an object by 256 KiB; the rest is for the status.
const largestCarried = 248 << 10

// checkSize refuses what v1alpha1 cannot show: one such object would break every list in v1alpha1.
func checkSize(object *v1alpha2.LlamaStackDistribution) field.ErrorList {
	read := object.DeepCopy()
	read.Status = v1alpha2.LlamaStackDistributionStatus{}
	view := &v1alpha1.LlamaStackDistribution{}
	v1alpha1.ConvertFromHub(read, view)
	size := 0
	for key, value := range view.Annotations {
		size += len(key) + len(value)
	}
	if size <= largestCarried {
		return nil
	}
	return field.ErrorList{field.Forbidden(field.NewPath("spec"), fmt.Sprintf(
		"read as v1alpha1, the object has %d KiB of annotations, and at most %d KiB can be there: shorten what only v1alpha2 has, or put the configuration into a ConfigMap that spec.overrideConfig names",
		size>>10, largestCarried>>10))}
}

// checkRejected names what an object of v1alpha1 has that cannot be run, by the fields of v1alpha1.
func checkRejected(object *v1alpha2.LlamaStackDistribution) field.ErrorList {
	_, rest := Effective(object)
	if rest == nil {
		return nil
	}
	return Rejected(rest)
}

// Rejected are the errors of values that v1alpha2 has no valid form for.
func Rejected(r *v1alpha2.Rejected) field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("spec")
	server := path.Child("server")
	if r.DistributionName != "" {
		errs = append(errs, field.Invalid(server.Child("distribution", "name"), r.DistributionName, "distribution.name and distribution.image are mutually exclusive: remove one of them"))
	}
	if r.Replicas != nil {
		errs = append(errs, field.Invalid(path.Child("replicas"), *r.Replicas, "must be 0 or more"))
	}
	if r.Port != nil {
		errs = append(errs, field.Invalid(server.Child("containerSpec", "port"), *r.Port, "must be between 1 and 65535"))
	}
	if r.Autoscaling != nil {
		errs = append(errs, field.Forbidden(server.Child("autoscaling"),
			"maxReplicas must be 0 or more, minReplicas between 0 and maxReplicas, and a target at least 1"))
	}
	if r.PodDisruptionBudget != nil {
		errs = append(errs, field.Forbidden(server.Child("podDisruptionBudget"), "minAvailable and maxUnavailable are mutually exclusive: remove one of them"))
	}
	if r.AllowedFrom != nil {
		errs = append(errs, field.Forbidden(path.Child("network", "allowedFrom"), "the name of a namespace and the key of a label must not be empty"))
	}
	return errs
}
