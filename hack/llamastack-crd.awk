# Finishes the CRD of LlamaStackDistribution that controller-gen wrote: it adds the
# conversion between the versions, which no marker can say, and takes out what
# Kubernetes' own documentation says of the fields of pods, in each version once more:
# with it the definition would be larger than what kubectl apply can store.

BEGIN {
	split("env volumes volumeMounts topologySpreadConstraints conditions claims limits requests", list, " ")
	for (i in list)
		foreign[list[i]] = 1
}

{
	match($0, /^ */)
	indent = RLENGTH
	if (dropping && (indent > dropped || $0 ~ /^ *$/))
		next
	dropping = 0

	key = $0
	sub(/^ *(- )?/, "", key)
	sub(/:.*/, "", key)
	while (depth > 0 && column[depth] >= indent)
		depth--

	if (key == "description") {
		# The description of the field itself stays; those below it go.
		for (i = 1; i < depth; i++)
			if (path[i] in foreign) {
				dropping = 1
				dropped = indent
				next
			}
	}
	depth++
	path[depth] = key
	column[depth] = indent
}

/^  annotations:/ {
	print
	print "    # With the definition all objects would go."
	print "    helm.sh/resource-policy: keep"
	next
}

/^  group: / {
	print "  conversion:"
	print "    strategy: Webhook"
	print "    webhook:"
	print "      clientConfig:"
	print "        service:"
	print "          name: workload-variant-autoscaler-webhook"
	print "          namespace: workload-variant-autoscaler-system"
	print "          path: /convert"
	print "          port: 443"
	print "      conversionReviewVersions: [v1]"
}

{ print }
