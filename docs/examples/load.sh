#!/usr/bin/env bash
# Keeps a number of requests in flight for a time, on the empty cluster of
# docs/empty-cluster.md:  load.sh NUMBER SECONDS
# The variable REQUESTS is the address that they are sent to; playground.env sets it.
set -euo pipefail
[[ $# == 2 && -n ${REQUESTS:-} ]] || {
	echo "usage: . ./playground.env; $0 NUMBER SECONDS   (requests in flight, and for how long)" >&2
	exit 2
}
number=$1
end=$((SECONDS + $2))
body='{"model":"meta-llama/Llama-3.1-8B-Instruct","prompt":"Hello","max_tokens":300,"ignore_eos":true}'
for ((i = 0; i < number; i++)); do
	while ((SECONDS < end)); do
		curl -s -o /dev/null --max-time 30 "$REQUESTS" -d "$body" || sleep 1
	done &
done
wait
