#!/usr/bin/env bash
# Installs or upgrades the chart with the settings that the published installer took from
# its environment. It prints the helm command that it then runs, and does nothing else;
# with DRY_RUN=true it only prints it. Arguments are passed on to helm.
#
#   WVA_NS                      namespace of the release  (workload-variant-autoscaler-system)
#   WVA_RELEASE_NAME            name of the release       (workload-variant-autoscaler)
#   ENVIRONMENT                 kubernetes, openshift or kind-emulator; openshift takes values-openshift.yaml
#   VALUES_FILE                 one more file of values
#   WVA_IMAGE_REPO, WVA_IMAGE_TAG, WVA_IMAGE_PULL_POLICY
#   CONTROLLER_INSTANCE         wva.controllerInstance
#   NAMESPACE_SCOPED            wva.namespaceScoped
#   PROMETHEUS_URL              wva.prometheus.baseURL
#   PROMETHEUS_CA_CERT_FILE     file for wva.prometheus.caCert
#   SKIP_TLS_VERIFY             wva.prometheus.tls.insecureSkipVerify
#   MONITORING_NAMESPACE        wva.prometheus.monitoringNamespace
#   ENABLE_SCALE_TO_ZERO        wva.scaleToZero
#   WVA_LOG_LEVEL, WVA_RECONCILE_INTERVAL, WVA_METRICS_SECURE
#   LLMD_NS, LLM_D_MODELSERVICE_NAME, MODEL_ID, ACCELERATOR_TYPE, SLO_TPOT, SLO_TTFT, VARIANT_COST
#   DEPLOY_WVA                  controller.enabled
#   DEPLOY_VA                   va.enabled
#   DEPLOY_HPA                  hpa.enabled, and wva.actuation Metric where it is true
#   INFRA_ONLY                  true: neither va.enabled nor hpa.enabled, whatever the two above say
#   SCALER_BACKEND              prometheus-adapter: wva.actuation Metric; keda: the same without hpa.enabled;
#                               none: as it is
#   HPA_MIN_REPLICAS, HPA_MAX_REPLICAS, HPA_STABILIZATION_SECONDS
#   VLLM_SVC_ENABLED, VLLM_SVC_NODEPORT, VLLM_SVC_PORT
#
# The published installer also installed what others make: Prometheus, an adapter or KEDA, and
# llm-d. This one does not, and says so where DEPLOY_PROMETHEUS, DEPLOY_PROMETHEUS_ADAPTER or
# DEPLOY_LLM_D is true.
set -euo pipefail

# The folder stays that of the caller, whose files are named from there.
chart=$(dirname "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")")/charts/workload-variant-autoscaler
command=(helm upgrade --install "${WVA_RELEASE_NAME:-workload-variant-autoscaler}" "$chart"
	--namespace "${WVA_NS:-workload-variant-autoscaler-system}" --create-namespace --take-ownership)

case ${ENVIRONMENT:-kubernetes} in
kubernetes | kind-emulator) ;;
openshift) command+=(--values "$chart/values-openshift.yaml") ;;
*)
	echo "ENVIRONMENT is '$ENVIRONMENT': expected kubernetes, openshift or kind-emulator" >&2
	exit 2
	;;
esac
if [[ -n ${VALUES_FILE:-} ]]; then
	command+=(--values "$VALUES_FILE")
fi

# set_value VARIABLE VALUE [HOW]: a variable that is there, also an empty one, becomes a value.
set_value() {
	local variable=$1 value=$2 how=${3:---set}
	if [[ -n ${!variable+x} ]]; then
		# helm reads a comma as the end of a value.
		command+=("$how" "$value=${!variable//,/\\,}")
	fi
}
# not_here VARIABLE WHAT: something is asked for that others make.
not_here() {
	echo "$1: this script does not install $2; see that the cluster has it (docs/install.md, docs/tasks/hpa-and-keda.md)" >&2
}
for part in "DEPLOY_PROMETHEUS Prometheus" "DEPLOY_PROMETHEUS_ADAPTER the Prometheus adapter" "DEPLOY_LLM_D llm-d"; do
	variable=${part%% *}
	if [[ ${!variable:-} == true ]]; then
		not_here "$variable" "${part#* }"
	fi
done

set_value WVA_IMAGE_REPO wva.image.repository
set_value WVA_IMAGE_TAG wva.image.tag --set-string
set_value WVA_IMAGE_PULL_POLICY wva.imagePullPolicy
set_value CONTROLLER_INSTANCE wva.controllerInstance --set-string
set_value NAMESPACE_SCOPED wva.namespaceScoped
set_value PROMETHEUS_URL wva.prometheus.baseURL
set_value PROMETHEUS_CA_CERT_FILE wva.prometheus.caCert --set-file
set_value SKIP_TLS_VERIFY wva.prometheus.tls.insecureSkipVerify
set_value MONITORING_NAMESPACE wva.prometheus.monitoringNamespace
set_value ENABLE_SCALE_TO_ZERO wva.scaleToZero
set_value WVA_LOG_LEVEL wva.logLevel
set_value WVA_RECONCILE_INTERVAL wva.reconcileInterval
set_value WVA_METRICS_SECURE wva.metrics.secure
set_value LLMD_NS llmd.namespace
set_value LLM_D_MODELSERVICE_NAME llmd.modelName
set_value MODEL_ID llmd.modelID
set_value ACCELERATOR_TYPE va.accelerator
set_value SLO_TPOT va.sloTpot
set_value SLO_TTFT va.sloTtft
set_value VARIANT_COST va.variantCost --set-string
set_value DEPLOY_WVA controller.enabled
set_value DEPLOY_VA va.enabled
set_value DEPLOY_HPA hpa.enabled
case ${SCALER_BACKEND:-} in
"" | none) ;;
prometheus-adapter | keda)
	not_here SCALER_BACKEND "$SCALER_BACKEND"
	command+=(--set wva.actuation=Metric)
	if [[ $SCALER_BACKEND == keda ]]; then
		command+=(--set hpa.enabled=false)
	fi
	;;
*)
	echo "SCALER_BACKEND is '$SCALER_BACKEND': expected prometheus-adapter, keda or none" >&2
	exit 2
	;;
esac
case ${INFRA_ONLY:-false} in
true) command+=(--set va.enabled=false --set hpa.enabled=false) ;;
false)
	if [[ ${DEPLOY_HPA:-} == true ]]; then
		command+=(--set wva.actuation=Metric)
	fi
	;;
*)
	echo "INFRA_ONLY is '$INFRA_ONLY': expected true or false" >&2
	exit 2
	;;
esac
set_value HPA_MIN_REPLICAS hpa.minReplicas
set_value HPA_MAX_REPLICAS hpa.maxReplicas
set_value HPA_STABILIZATION_SECONDS hpa.behavior.scaleUp.stabilizationWindowSeconds
set_value HPA_STABILIZATION_SECONDS hpa.behavior.scaleDown.stabilizationWindowSeconds
set_value VLLM_SVC_ENABLED vllmService.enabled
set_value VLLM_SVC_NODEPORT vllmService.nodePort
set_value VLLM_SVC_PORT vllmService.port

command+=("$@")
printf '%q ' "${command[@]}"
echo
if [[ ${DRY_RUN:-} != true ]]; then
	exec "${command[@]}"
fi
