package prometheus

import (
	"fmt"
	"strings"

	"github.com/prometheus/common/model"

	"llmd.ai/workload-variant-autoscaler/pkg/modelserver"
)

// A target is one address that one job scrapes. Prometheus itself gives every target the labels job
// and instance, and nothing else that is sure to be there: whoever configures it may add any labels,
// and so may the server. So no list of labels tells what a server split from what was scraped
// twice. This does:
//
//   - What one target shows is taken as a whole: its series are added up by whatever they differ.
//   - Series of one job and address of another time are of another scrape of the same page, by a
//     second Prometheus or by a second target of the job. All that one scrape finds has one time.
//   - Of the targets at one address the largest counts.
//   - A second address of a pod counts unless it shows an engine that the first one shows too.
const (
	// sources are the labels by which pods are named. A pod_name counts where there is no pod.
	sources  = "namespace,pod,pod_name"
	labelPod = "pod"
	address  = "instance"
	job      = "job"
	// labelNames holds both names of a pod for a moment.
	labelNames = "wva_pod"
)

// perEngine tells the engines at one address apart.
const perEngine = perPod + "," + address + "," + modelserver.LabelEngine

// whole joins a vector of the series into one value for each engine of a target. More are labels
// that are kept.
func (q builder) whole(across, vector, series string, more ...string) string {
	return fmt.Sprintf("%s by (%s) (%s)", across, strings.Join(append([]string{sources, address, job, modelserver.LabelEngine}, more...), ","),
		q.oneScrape(vector, series, sources, q.servers))
}

// oneScrape leaves out the values of series that an older scrape of the same page told, and all but
// one process of each engine. Series that ended have no time, and stay.
func (q builder) oneScrape(vector, series, place string, c copies) string {
	if !c.older {
		return fmt.Sprintf("max without (%s) (%s)", strings.Join(modelserver.RankLabels(), ","), vector)
	}
	return fmt.Sprintf("max without (%s) (%s unless %s)", strings.Join(modelserver.RankLabels(), ","), vector, older(series, place))
}

// older are the series of a target that a later scrape of it has shown again.
func older(series, place string) string {
	return fmt.Sprintf("(timestamp(%[1]s) < on (%[2]s,%[3]s,%[4]s) group_left () max by (%[2]s,%[3]s,%[4]s) (timestamp(%[1]s)))", series, place, address, job)
}

// copies say what there is of a page that was scraped more than once. Most clusters have none, and
// to leave out copies costs a server several times as much as all else of a query.
type copies struct {
	// older is set where two targets have the same job and address, and again where a pod
	// shows the same at two addresses.
	older, again bool
}

// copiedServers asks which copies there are of what servers show.
func (q builder) copiedServers() query {
	return asking(twice, by(olderServers, oldest(sources, modelserver.Running, modelserver.Completed)), by(serversAgain, "group("+q.seenTwice()+")"))
}

// copiedGateways asks which copies there are of what gateways show.
func (q builder) copiedGateways() query {
	return asking(twice, by(olderGateways, oldest(perPod, modelserver.GatewayQueue, modelserver.GatewayDispatched)),
		by(gatewaysAgain, "group("+q.gatewaySeenTwice()+")"))
}

// oldest is there where a later scrape shows again what an older one showed.
func oldest(place string, quantities ...modelserver.Quantity) string {
	var all []string
	for _, quantity := range quantities {
		all = append(all, each(quantity, func(series string) string { return older(series, place) }))
	}
	return "group(" + strings.Join(all, " or ") + ")"
}

// leaveOut takes an answer to copiedServers or copiedGateways.
func (q builder) leaveOut(found model.Vector) builder {
	q.servers, q.gateways = copies{}, copies{}
	for _, s := range found {
		switch s.Metric[labelIs] {
		case olderServers:
			q.servers.older = true
		case serversAgain:
			q.servers.again = true
		case olderGateways:
			q.gateways.older = true
		case gatewaysAgain:
			q.gateways.again = true
		}
	}
	return q
}

// unlessAgain leaves out the engines that another address shows too.
func (q builder) unlessAgain(engines string) string {
	if !q.servers.again {
		return engines
	}
	return fmt.Sprintf("%s unless on (%s) (%s)", engines, perEngine, q.seenTwice())
}

// ofServers makes one value for each pod of those of its engines at all of its targets.
func (q builder) ofServers(across, engines string) string {
	return fmt.Sprintf("%s by (%s) (%s)", across, perPod, q.ofEngines(across, engines))
}

// ofEngines makes one value for each engine of those that its targets show.
func (q builder) ofEngines(across, targets string, more ...string) string {
	keep := strings.Join(append([]string{perEngine}, more...), ",")
	return fmt.Sprintf("max by (%s) (%s)", keep, ofPods(across, keep+","+job, q.unlessAgain(targets)))
}

// ofPages makes one value for each page.
func (q builder) ofPages(targets string) string {
	return ofPods("sum", perPage, q.unlessAgain(targets))
}

// ofPods joins values of sources into those of pods. A server may have a pod_name for each of many
// things: it names no pod where the scrape has named one.
func ofPods(across, by, vector string) string {
	return fmt.Sprintf(`%s by (%s) (label_replace(label_join(%s, %q, "/", "pod", "pod_name"), "pod", "$1", %[4]q, "/(.+)"))`, across, by, vector, labelNames)
}

// seenTwice are the engines that another address of the same pod shows too: a sidecar may hand on
// the page of the server beside it (Istio merges metrics at port 15020, llm-d's routing proxy passes
// them on). Such an engine has the same labels, and its sum of times lies between
// the other's of now and of a scrape ago. One without a request has none yet, and neither has the other.
func (q builder) seenTwice() string {
	return q.twice(`{__name__=~"(ray_)?(vllm|sglang)[:_]time_to_first_token_seconds_sum",pod!=""}`, perEngine, perPod+","+modelserver.LabelEngine)
}

// twice are those of which another one of the same owner counts the same.
func (q builder) twice(series, each, owner string) string {
	count := func(series string) string {
		return fmt.Sprintf("max by (%[1]s) (sum by (%[1]s,%s) (%s))", each, job, series)
	}
	now := count(series)
	return fmt.Sprintf("(%[1]s unless (%[1]s < on (%[2]s) group_left () max by (%[2]s) (%[3]s))) unless topk by (%[2]s) (1, %[1]s)",
		now, owner, count(series+" offset "+q.again))
}

// counted adds up for each model what gateways count.
func (q builder) counted(vector, series string) string {
	return sum(perModel, fmt.Sprintf("max by (%s,%s,target_model_name,model_name) (%s)", perPod, address, q.pages(vector, series)))
}

// pages makes one value for each model of a page of a gateway. A gateway behind two ports of its pod counts once.
func (q builder) pages(vector, series string) string {
	all := sum(perGatewayPage, q.oneScrape(vector, series, perPod, q.gateways))
	if q.gateways.again {
		all += fmt.Sprintf(" unless on (%s,%s) (%s)", perPod, address, q.gatewaySeenTwice())
	}
	return all
}

// gatewaySeenTwice are the gateways that another address of the same pod shows too.
func (q builder) gatewaySeenTwice() string {
	return q.twice(`{__name__=~".+_scheduler_attempts.*",pod!=""}`, perPod+","+address, perPod)
}
