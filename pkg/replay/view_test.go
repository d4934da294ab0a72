package replay

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/simulation"
	"llmd.ai/workload-variant-autoscaler/pkg/workload"
)

// scripted asks in even steps and answers as it is told.
type scripted struct {
	every  time.Duration
	answer func(round int, view *View) Answer
	rounds int
	asked  []time.Duration
}

// Next implements Policy.
func (s *scripted) Next(now time.Duration) time.Duration {
	if now < 0 {
		return 0
	}
	return now + s.every
}

// Parameters implements Policy.
func (s *scripted) Parameters() []Parameter { return nil }

// Decide implements Policy.
func (s *scripted) Decide(view *View) Answer {
	s.asked = append(s.asked, view.Now)
	s.rounds++
	return s.answer(s.rounds-1, view)
}

// spread are the replicas of a fleet that is busy growing and shrinking.
func spread(round int) Answer {
	return Answer{Replicas: [][]int{{1 + (round/4)%5, 2 - (round/7)%3}}}
}

func TestAPolicySeesNothingNewerThanTheScrapes(t *testing.T) {
	for _, window := range []time.Duration{time.Minute, 8 * time.Minute} {
		for _, scrape := range []time.Duration{4 * time.Second, 15 * time.Second} {
			t.Run(fmt.Sprint(window, scrape), func(t *testing.T) {
				s := small()
				s.Collection.Scrape, s.Collection.Window = scrape, window
				source := short(t, workload.Point{Rate: 3}, workload.Point{At: 14 * time.Minute, Rate: 3})
				p := played(t, s, source, "static:1", 20*time.Second)
				scrapes, longest := 0, time.Duration(0)
				script := &scripted{every: 7 * time.Second, answer: func(round int, view *View) Answer {
					for _, m := range view.Models {
						checkScrapes(t, view, m.Gateway, scrape, 0, func(s GatewayScrape) time.Duration { return s.At })
						for _, v := range m.Variants {
							require.True(t, slices.IsSortedFunc(v.Pods, func(a, b Pod) int { return strings.Compare(a.Name, b.Name) }))
							for _, pod := range v.Pods {
								checkPod(t, view, pod, scrape)
								scrapes += len(pod.Scrapes)
								if last, ok := pod.Last(); ok {
									longest = max(longest, last.At-pod.Scrapes[0].At)
								}
							}
						}
					}
					return spread(round)
				}}
				performed := p.with(script, [][]int{{1, 2}})
				require.NoError(t, performed.err)
				assert.Greater(t, scrapes, 1000)
				assert.GreaterOrEqual(t, longest, min(window, 5*time.Minute)-scrape, "a whole window is kept")
				assert.GreaterOrEqual(t, longest, window-time.Minute)
			})
		}
	}
}

// checkPod checks what a view says of one replica.
func checkPod(t *testing.T, view *View, pod Pod, scrape time.Duration) {
	t.Helper()
	switch {
	case pod.Metrics != simulation.Metrics{}:
		t.Fatalf("%s at %s: what a server says now is not known before it is scraped", pod.Name, view.Now)
	case pod.Stage < simulation.Created || pod.Stage > simulation.Serving:
		t.Fatalf("%s at %s: who leaves is not shown", pod.Name, view.Now)
	case max(pod.Created, pod.Placed, pod.Ready) > view.Now:
		t.Fatalf("%s at %s: what it will be is not known: %+v", pod.Name, view.Now, pod.Replica)
	case pod.Stage == simulation.Serving:
		checkScrapes(t, view, pod.Scrapes, scrape, pod.Ready, func(s Scrape) time.Duration { return s.At })
	case len(pod.Scrapes) > 0:
		t.Fatalf("%s at %s: who does not serve says nothing", pod.Name, view.Now)
	}
}

// checkScrapes checks their times: one each interval since the first possible one.
func checkScrapes[S any](t *testing.T, view *View, scrapes []S, every, since time.Duration, at func(S) time.Duration) {
	t.Helper()
	for i := range scrapes {
		if now := at(scrapes[i]); now > view.Now || now < since || i > 0 && now-at(scrapes[i-1]) != every {
			t.Fatalf("at %s: scrape %d of one that serves since %s is of %s; expected one every %s", view.Now, i, since, now, every)
		}
	}
	if view.Now-since >= every && (len(scrapes) == 0 || view.Now-at(scrapes[len(scrapes)-1]) >= every) {
		t.Fatalf("at %s: the newest of %d scrapes is missing", view.Now, len(scrapes))
	}
}

func TestScrapesAreWhatServersSaidThen(t *testing.T) {
	p := played(t, small(), hill(t), "static:1", 20*time.Second)
	policy := &scripted{every: time.Second}
	s, err := newStage(&p, policy, [][]int{{1, 2}})
	require.NoError(t, err)
	type look struct {
		pod string
		at  time.Duration
	}
	truth, compared := map[look]simulation.Metrics{}, 0
	gateways := map[time.Duration]simulation.Gateway{}
	policy.answer = func(round int, view *View) Answer {
		for _, v := range view.Models[0].Variants {
			for _, pod := range v.Pods {
				for _, scrape := range pod.Scrapes {
					if said, known := truth[look{pod.Name, scrape.At}]; known {
						if said != scrape.Metrics {
							t.Fatalf("%s at %s said %+v; expected %+v", pod.Name, scrape.At, scrape.Metrics, said)
						}
						compared++
					}
				}
			}
		}
		for _, scrape := range view.Models[0].Gateway {
			if said, known := gateways[scrape.At]; known {
				require.Equal(t, said, scrape.Gateway, scrape.At)
				compared++
			}
		}
		// What is true at this second is scraped at it, before anybody acts.
		for v := range 2 {
			for _, r := range s.world.Replicas(simulation.VariantIndex{Variant: v}) {
				truth[look{r.Name, view.Now}] = r.Metrics
			}
		}
		gateways[view.Now] = s.world.Gateway(0)
		return spread(round)
	}
	require.NoError(t, s.run())
	require.Greater(t, compared, 100)
}

func TestScrapesComeLater(t *testing.T) {
	first := func(later time.Duration) (gateway, pod time.Duration) {
		s := small()
		s.Collection.Later = later
		p := played(t, s, hill(t), "static:1", 20*time.Second)
		policy := &scripted{every: time.Minute, answer: func(round int, view *View) Answer {
			if round == 1 {
				gateway, pod = view.Models[0].Gateway[0].At, view.Models[0].Variants[0].Pods[0].Scrapes[0].At
			}
			return Answer{Replicas: [][]int{{1, 2}}}
		}}
		require.NoError(t, p.with(policy, [][]int{{1, 2}}).err)
		return gateway, pod
	}
	every := small().Collection.Scrape
	gateway, pod := first(0)
	for _, later := range []time.Duration{time.Second, every - time.Second, every + time.Second} {
		g, p := first(later)
		require.Equal(t, (gateway+later)%every, g, later)
		require.Equal(t, (pod+later)%every, p, later)
	}
}

func TestNoGatewayIsScrapedWhereThereIsNone(t *testing.T) {
	s := small()
	s.Collection.Gateway = false
	p := played(t, s, hill(t), "static:1", 20*time.Second)
	policy := &scripted{every: 5 * time.Second, answer: func(round int, view *View) Answer {
		require.Empty(t, view.Models[0].Gateway)
		return spread(round)
	}}
	require.NoError(t, p.with(policy, [][]int{{1, 2}}).err)
	require.NotZero(t, policy.rounds)
}

func TestPoliciesAreAskedOnTimeAndNotAfterTheEnd(t *testing.T) {
	p := played(t, small(), sourceOf(io.EOF, arrival(0, 1, 1), arrival(30, 1, 1)), "static:1", time.Minute)
	policy := &scripted{every: 7 * time.Second, answer: func(int, *View) Answer { return Answer{Replicas: [][]int{{1, 0}}} }}
	require.NoError(t, p.with(policy, [][]int{{1, 0}}).err)
	assert.Equal(t, []time.Duration{0, 7 * time.Second, 14 * time.Second, 21 * time.Second, 28 * time.Second}, policy.asked)
}

func TestWhoeverLowersMakesRoomFirst(t *testing.T) {
	// Both variants want the same eight devices.
	s := small()
	s.Models[0].Variants[0].Request, s.Models[0].Variants[1].Request = replicaOf("H100", 1), replicaOf("H100", 1)
	s.Drain = 0
	for name, wanted := range map[string][]int{"the first one grows": {6, 2}, "the second one grows": {2, 6}} {
		t.Run(name, func(t *testing.T) {
			p := played(t, s, sourceOf(io.EOF, arrival(0, 1, 1), arrival(30, 1, 1)), "static:1", 0)
			policy := &scripted{every: 10 * time.Second, answer: func(int, *View) Answer { return Answer{Replicas: [][]int{wanted}} }}
			performed := p.with(policy, [][]int{{4, 4}})
			require.NoError(t, performed.err)
			assert.Zero(t, performed.result.UnplaceableReplicas)
			assert.Equal(t, 2, performed.result.ScaleEvents)
		})
	}
}

func TestVictimsGo(t *testing.T) {
	var names []string
	p := played(t, small(), sourceOf(io.EOF, arrival(0, 1, 1), arrival(60, 1, 1)), "static:1", time.Minute)
	policy := &scripted{every: 10 * time.Second, answer: func(round int, view *View) Answer {
		var now []string
		for _, pod := range view.Models[0].Variants[0].Pods {
			now = append(now, pod.Name)
		}
		answer := Answer{Replicas: [][]int{{len(now), 0}}}
		switch round {
		case 0:
			names = now
			answer.Replicas[0][0] = 2
			answer.Victims = [][][]string{{{names[1], names[0]}, nil}}
		case 1:
			require.Equal(t, []string{names[2], names[3]}, now, "those that were named have gone")
		}
		return answer
	}}
	require.NoError(t, p.with(policy, [][]int{{4, 0}}).err)
	require.Len(t, names, 4)
}
