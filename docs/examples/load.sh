#!/usr/bin/env bash
# Keeps REQUESTS requests in flight for SECONDS seconds, on the empty cluster of
# docs/empty-cluster.md: load.sh REQUESTS SECONDS
set -euo pipefail
[[ $# == 2 && -n ${REQUESTS:-} ]] || {
	echo "usage: . ./playground.env; $0 REQUESTS SECONDS" >&2
	exit 2
}
end=$((SECONDS + $2))
body='{"model":"meta-llama/Llama-3.1-8B-Instruct","prompt":"Hello","max_tokens":300,"ignore_eos":true}'
for ((i = 0; i < $1; i++)); do
	while ((SECONDS < end)); do
		curl -s -o /dev/null --max-time 30 "$REQUESTS" -d "$body" || sleep 1
	done &
done
wait
