#!/usr/bin/env bash
# The import law, as far as only the whole graph can show it: what each room links
# in the end, not only what its files name. .golangci.yml has the other half.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

module=$(go list -m)

# One line per package and per test binary: its path, its direct imports and
# everything that it links. Not read from a pipe, which would hide that go list failed.
packages=$(go list -f 'package {{.ImportPath}} {{join .Imports ","}} {{join .Deps ","}}' ./...)
tests=$(go list -test -f '{{if not .ForTest}}{{if eq .Name "main"}}test {{.ImportPath}} - {{join .Deps ","}}{{end}}{{end}}' ./...)

# The patterns are those of the law; a package of ours is written without the
# module's path.
printf '%s\n' "$packages" "$tests" | awk -v module="$module" '
# One line for each room and each thing that is wrong with it: a forbidden package
# usually brings a hundred more.
function complain(path, what) {
	bad = 1
	if (!((path, what) in said))
		print path ": " what
	said[path, what] = 1
}

# A library by the first elements of its path: sigs.k8s.io/yaml/goyaml.v2 -> sigs.k8s.io/yaml.
function library(name,    part, n) {
	n = split(name, part, "/")
	return part[1] (n > 1 ? "/" part[2] : "") (part[1] == "github.com" && n > 2 ? "/" part[3] : "")
}

# Does path lie in the folder (or is it the folder)?
function within(path, folder) {
	return path == folder || index(path, folder "/") == 1
}

# The first of the folders (a list with blanks) that path lies in, or nothing.
function one_of(path, folders,    n, i, list) {
	n = split(folders, list, " ")
	for (i = 1; i <= n; i++)
		if (within(path, list[i]))
			return list[i]
	return ""
}

function own(path) {
	return index(path, module "/") == 1 ? substr(path, length(module) + 2) : ""
}

# The standard library has no dot in the first element of its paths.
function standard(path) {
	sub(/\/.*/, "", path)
	return path !~ /\./
}

BEGIN {
	ring0 = "pkg/capacity pkg/decision pkg/forecast pkg/round pkg/workload pkg/simulation pkg/replay pkg/migration"
	ring1 = "pkg/apis pkg/inventory pkg/config pkg/llamastack pkg/modelserver pkg/report pkg/scenario"
	ring2 = "pkg/adapters"
	ring3 = "pkg/controller pkg/admission pkg/llamastack/operator plugins"

	# Of ours, what each room may link.
	may["pkg/capacity"] = "pkg/capacity"
	may["pkg/forecast"] = "pkg/capacity pkg/forecast"
	may["pkg/decision"] = "pkg/capacity pkg/forecast pkg/decision"
	may["pkg/round"] = "pkg/capacity pkg/forecast pkg/decision pkg/round"
	may["pkg/workload"] = "pkg/capacity pkg/workload"
	may["pkg/simulation"] = "pkg/capacity pkg/workload pkg/simulation"
	may["pkg/replay"] = ring0
	may["pkg/migration"] = "pkg/capacity pkg/migration"
	may["pkg/apis"] = ring0 " pkg/apis"
	may["pkg/inventory"] = may["pkg/config"] = may["pkg/modelserver"] = may["pkg/report"] = may["pkg/scenario"] = ring0 " " ring1
	may["pkg/llamastack"] = "pkg/apis pkg/llamastack"
	may["pkg/llamastack/operator"] = "pkg/apis pkg/llamastack"
	may["pkg/adapters"] = ring0 " " ring1
	may["pkg/controller"] = ring0 " " ring1 " pkg/controller"
	may["pkg/admission"] = ring0 " " ring1 " pkg/admission"
	may["plugins"] = ring0 " " ring1
	may["pkg/release"] = "pkg/release"
	may["cmd/manager"] = ring0 " " ring1 " " ring2 " pkg/controller pkg/admission pkg/release cmd/manager"
	may["cmd/kubectl-wva"] = ring0 " " ring1 " pkg/adapters/prometheus pkg/release manifests/crd cmd/kubectl-wva"
	may["cmd/scheduler"] = ring0 " " ring1 " plugins cmd/scheduler"

	# The stages of a decision, each of which may link those before it alone.
	stages = split("contract signal fleet demand rate need limit allocate preempt settle", stage, " ")
	before = ""
	for (s = 1; s <= stages; s++) {
		may["pkg/decision/" stage[s]] = "pkg/capacity pkg/forecast" before
		before = before " pkg/decision/" stage[s]
	}

	# What says findings in words, which the tests of the decision use.
	may["pkg/report/sentence"] = "pkg/capacity pkg/forecast pkg/decision/contract"

	# Of the standard library, what ring 0 may not name.
	forbidden = "context log net os sync syscall unsafe math/rand"
	seeded = "pkg/workload pkg/simulation pkg/replay"

	# Clients, which data and its translation do without.
	clients = "k8s.io/client-go k8s.io/apiserver k8s.io/kubernetes sigs.k8s.io/controller-runtime github.com/prometheus/client_golang github.com/prometheus/prometheus go.etcd.io/etcd"

	# Who may link Kubernetes itself; of the tests, those that need the real
	# scheduling framework.
	kubernetes = "cmd/scheduler cmd/playground"
	framework = kubernetes " plugins test/agreement"
	components = "k8s.io/kubernetes go.etcd.io/etcd/server sigs.k8s.io/kwok github.com/prometheus/prometheus/tsdb"
}

$1 == "package" {
	path = own($2)
	room = one_of(path, "pkg/capacity pkg/decision pkg/forecast pkg/round pkg/workload pkg/simulation pkg/replay pkg/migration " \
		"pkg/apis pkg/inventory pkg/config pkg/llamastack/operator pkg/llamastack pkg/modelserver pkg/report pkg/scenario pkg/release pkg/adapters pkg/controller pkg/admission plugins cmd/manager cmd/scheduler cmd/kubectl-wva")
	# A package of the decision is a stage, and has a place in the list.
	if (within(path, "pkg/decision") && path != "pkg/decision") {
		room = path
		if (!(path in may))
			complain(path, "is no stage of the decision; name it in the list of hack/verify-imports.sh")
	}
	if (path == "pkg/report/sentence")
		room = path
	direct = split($3, imports, ",")
	all = split($4, linked, ",")

	for (i = 1; i <= direct; i++) {
		name = imports[i]
		if (one_of(path, ring0) && standard(name)) {
			if (one_of(name, forbidden) && !(name == "math/rand/v2" && one_of(path, seeded)))
				complain(path, "ring 0 may not import " name)
		}
		other = own(name)
		if (within(other, "cmd") && !within(path, "cmd"))
			complain(path, "nobody but a program imports " other)
	}

	for (i = 1; i <= all; i++) {
		name = linked[i]
		other = own(name)
		if (other != "" && room in may && !one_of(other, may[room]) && !within(other, path))
			complain(path, "links " other ", which its ring may not know")
		if (other != "" && other != path && within(path, "pkg/adapters") && within(other, "pkg/adapters"))
			complain(path, "links " other "; adapters do not know each other")
		if (other != "" && within(path, "plugins") && within(other, "pkg/decision"))
			complain(path, "links " other "; plugin and brain share facts, not opinions")
		if (other == "" && !standard(name) && one_of(path, ring0) && \
		    !(within(path, "pkg/migration") && name ~ /yaml/))
			complain(path, "ring 0 links " library(name))
		if (one_of(path, ring1) && !one_of(path, ring3) && one_of(name, clients))
			complain(path, "ring 1 links the client " library(name))
		if (one_of(other, "pkg/llamastack/operator") && one_of(path, ring1 " " ring2 " " ring3) && !one_of(path, "pkg/llamastack/operator"))
			complain(path, "links " other "; nobody but a program knows the operator of servers")
		if (within(name, "k8s.io/kubernetes") && !one_of(path, kubernetes))
			complain(path, "links k8s.io/kubernetes; only " kubernetes " may")
		if (within(path, "pkg/localcluster") && one_of(name, components))
			complain(path, "links " library(name) "; components are children of the prebuilt playground")
	}
}

$1 == "test" && $2 ~ /\.test$/ {
	path = own($2)
	sub(/\.test$/, "", path)
	all = split($4, linked, ",")
	for (i = 1; i <= all; i++)
		if (within(linked[i], "k8s.io/kubernetes") && !one_of(path, framework))
			complain(path, "its test links k8s.io/kubernetes; start the prebuilt programs instead")
}

END { exit bad }
'
