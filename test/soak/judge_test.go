package main

import (
	"bytes"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The tokens of the managers, and when the soak of these tests begins.
const first, second, lone = "JTI=1", "JTI=2", "JTI=3"

var begin = time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC)

func at(seconds float64) time.Time { return begin.Add(time.Duration(seconds * float64(time.Second))) }

// made is a request that came a tenth of a second before its answer.
func made(seconds float64, verb, resource, name, credential, body string) request {
	return request{
		Received: at(seconds - 0.1), At: at(seconds), Verb: verb, User: "somebody", Credential: credential,
		Resource: resource, Namespace: namespace, Name: name, Code: 200, Body: []byte(body),
	}
}

func scaled(seconds float64, name, credential string, replicas int) request {
	r := made(seconds, "update", "deployments", name, credential, fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas))
	r.Subresource = "scale"
	return r
}

func leads(seconds float64, credential, holder string) request {
	r := made(seconds, "update", "leases", "lease", credential, fmt.Sprintf(`{"spec":{"holderIdentity":%q}}`, holder))
	r.Namespace = home
	return r
}

func createdWith(seconds float64, resource, name, body string) request {
	return made(seconds, "create", resource, "", "", fmt.Sprintf(`{"metadata":{"name":%q},%s}`, name, body))
}

// sound is a soak in which nothing is wrong: 2.5 requests a second of alpha, then 10, then
// 2.5 again, of which a replica completes 3.57.
func sound() *seen {
	s := &seen{
		Began: begin, Ended: at(200), Owners: map[string]string{first: pair[0], second: pair[1], lone: witness},
		Requests: []request{
			createdWith(1, "deployments", "alpha-h100", `"spec":{"replicas":1}`),
			createdWith(1, "deployments", "beta-l40s", `"spec":{"replicas":1}`),
			createdWith(1, "deployments", "beta-h100", `"spec":{"replicas":0}`),
			createdWith(1, "deployments", "gamma-h100", `"spec":{}`),
			leads(2, first, "a"), leads(2.5, "JTI=scheduler", "c"),
			scaled(20, "alpha-h100", first, 4),
			leads(30, first, ""), leads(31, second, "b"),
			scaled(120, "alpha-h100", second, 1),
		},
	}
	for _, m := range models {
		a := asked{Model: m, Steps: []rate{{at(0), 2.5}}, Sent: 9}
		for i, v := range m.variants {
			n := int32(1 - min(i, 1))
			a.Ends = append(a.Ends, end{v.name, n, n, "True", ""})
		}
		s.Loads = append(s.Loads, a)
	}
	s.Loads[0].Steps = []rate{{at(0), 2.5}, {at(10), 10}, {at(60), 2.5}}
	return s
}

// servedBy is how many replicas of a Deployment served from 30 s on, every 15 s.
func servedBy(name string, counts ...int32) (all []readiness) {
	for i, n := range counts {
		all = append(all, readiness{At: at(30 + 15*float64(i)), Ready: map[string]int32{name: n}})
	}
	return all
}

func TestTheJudge(t *testing.T) {
	cases := []struct {
		name   string
		change func(*seen)
		wrong  string
	}{
		{"nothing", func(*seen) {}, ""},
		{"a write of who no longer leads", func(s *seen) { s.add(scaled(40, "alpha-h100", first, 5)) }, `the leader is "manager-2"`},
		{"a write that was under way when the leader changed", func(s *seen) { s.add(scaled(30.05, "alpha-h100", first, 5)) }, ""},
		{"a write before anybody leads", func(s *seen) { s.add(scaled(1.5, "alpha-h100", first, 2)) }, `the leader is ""`},
		{"a write of the witness on what is not its own", func(s *seen) { s.add(scaled(40, "alpha-h100", lone, 5)) }, "not of its instance"},
		{"a write of the leader on what is the witness's", func(s *seen) { s.add(scaled(40, "gamma-h100", second, 5)) }, "not of its instance"},
		{"a write of the witness", func(s *seen) { s.add(scaled(40, "gamma-h100", lone, 2)) }, ""},
		{"a write of somebody", func(s *seen) { s.add(scaled(40, "alpha-h100", "", 5)) }, "somebody writes 5 replicas of alpha-h100, which had 4: nobody but"},
		{"a write that was refused", func(s *seen) {
			r := scaled(40, "alpha-h100", first, 5)
			r.Code = 409
			s.add(r)
		}, ""},
		{"a write that changes nothing", func(s *seen) { s.add(scaled(40, "alpha-h100", second, 4)) }, "it changes nothing"},
		{"a write against an HPA", func(s *seen) {
			s.add(createdWith(35, "horizontalpodautoscalers", "alpha-h100", `"spec":{}`), scaled(50, "alpha-h100", second, 5))
		}, "although a HorizontalPodAutoscaler has been there for 15s"},
		{"a write before an HPA can be known", func(s *seen) {
			s.add(createdWith(35, "horizontalpodautoscalers", "alpha-h100", `"spec":{}`), scaled(37, "alpha-h100", second, 5),
				made(39, "delete", "horizontalpodautoscalers", "alpha-h100", "", ""))
		}, ""},
		{"too few for the load", func(s *seen) { s.add(scaled(55, "alpha-h100", second, 2)) }, "leaves 2 for the 10.0 requests/s that were asked at least for the last 30s, which need 3"},
		{"few, of which never more served", func(s *seen) {
			s.Loads[0].Steps = []rate{{at(0), 2.5}, {at(10), 10}, {at(110), 2.5}}
			s.Ready = servedBy("alpha-h100", 1, 2, 2, 2)
			s.add(scaled(85, "alpha-h100", second, 2))
		}, ""},
		{"few, of which more served for a while", func(s *seen) {
			s.Loads[0].Steps = []rate{{at(0), 2.5}, {at(10), 10}, {at(110), 2.5}}
			s.Ready = servedBy("alpha-h100", 1, 3, 2, 2)
			s.add(scaled(85, "alpha-h100", second, 2))
		}, "leaves 2 for the 10.0 requests/s"},
		{"few, of which nobody knows how many served", func(s *seen) {
			s.Loads[0].Steps = []rate{{at(0), 2.5}, {at(10), 10}, {at(110), 2.5}}
			s.add(scaled(85, "alpha-h100", second, 2))
		}, "leaves 2 for the 10.0 requests/s"},
		{"few, of more that were asked for a moment ago", func(s *seen) {
			s.Loads[0].Steps = []rate{{at(0), 2.5}, {at(10), 10}, {at(110), 2.5}}
			s.Ready = servedBy("alpha-h100", 1, 2, 2, 2)
			s.add(scaled(60, "alpha-h100", second, 5), scaled(85, "alpha-h100", second, 2))
		}, "leaves 2 for the 10.0 requests/s"},
		{"few, for the load has just risen", func(s *seen) {
			s.Loads[2].Steps = []rate{{at(0), 2.5}, {at(110), 8}, {at(140), 2.5}}
			s.add(scaled(40, "gamma-h100", lone, 2), scaled(112, "gamma-h100", lone, 1))
		}, ""},
		{"few, when another variant has just come", func(s *seen) {
			s.Loads[1].Steps = []rate{{at(0), 6}}
			s.Loads[1].Ends = []end{{"beta-l40s", 1, 1, "True", ""}, {"beta-h100", 2, 2, "True", ""}}
			s.add(scaled(40, "beta-l40s", second, 2), scaled(50, "beta-h100", second, 2), scaled(52, "beta-l40s", second, 1))
		}, "leaves 1 for the 6.0 requests/s"},
		{"few, when another variant has been there", func(s *seen) {
			s.Loads[1].Steps = []rate{{at(0), 6}}
			s.Loads[1].Ends = []end{{"beta-l40s", 1, 1, "True", ""}, {"beta-h100", 2, 2, "True", ""}}
			s.add(scaled(40, "beta-l40s", second, 2), scaled(50, "beta-h100", second, 2), scaled(62, "beta-l40s", second, 1))
		}, ""},
		{"fewer without Prometheus", func(s *seen) { s.Deeds = []deed{{killed, prometheus, at(90), at(130)}} }, "no Prometheus for 30s"},
		{"fewer when Prometheus has just gone", func(s *seen) { s.Deeds = []deed{{killed, prometheus, at(110), at(130)}} }, ""},
		{"no write that lowers", func(s *seen) { s.Requests = s.Requests[:len(s.Requests)-1] }, "0 lower: nothing is proven"},
		{"too few at the end", func(s *seen) { s.Loads[0].Steps = append(s.Loads[0].Steps, rate{at(150), 9}) }, "1 replicas of alpha are asked for, and 9.0 requests/s need 4 to 6"},
		{"too many at the end", func(s *seen) { s.Loads[2].Ends[0] = end{"gamma-h100", 5, 5, "True", "5 needed"} }, "5 replicas of gamma are asked for, and 2.5 requests/s need 1 to 3; gamma-h100 says \"5 needed\""},
		{"a queue that stays", func(s *seen) { s.Queued = []string{"30 requests wait in one replica of gamma"} }, "30 requests wait in one replica of gamma after nothing was killed for 5m0s"},
		{"not ready at the end", func(s *seen) { s.Loads[2].Ends[0].Ready = 0 }, "0 of the 1 replicas of gamma-h100 are ready"},
		{"an object that is not Ready at the end", func(s *seen) { s.Loads[2].Ends[0].State = "Conflict: why" }, "gamma-h100 is not Ready: Conflict: why"},
		{"a program that ends", func(s *seen) { s.Deaths = []death{{pair[0], at(50), "somehow"}} }, "50s: manager-1 ended somehow"},
		{"a program that ends without an API server", func(s *seen) {
			s.Deaths, s.Deeds = []death{{pair[0], at(50), "somehow"}}, []deed{{killed, apiServer, at(40), at(44)}}
		}, ""},
		{"goroutines that stay", func(s *seen) { s.Samples = lifeOf(100, 10, 0) }, "goroutines at least at the end"},
		{"memory that stays", func(s *seen) { s.Samples = lifeOf(100, 0, 5<<20) }, "MiB at least at the end"},
		{"a life that is short", func(s *seen) { s.Samples = lifeOf(10, 100, 0) }, ""},
		{"a life that stays as it is", func(s *seen) { s.Samples = lifeOf(100, 0, 0) }, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := sound()
			c.change(s)
			r := judge(s)
			if c.wrong == "" {
				assert.Empty(t, r.Wrong)
				return
			}
			require.NotEmpty(t, r.Wrong)
			assert.Contains(t, r.Wrong[0], c.wrong)
		})
	}
}

// add puts requests where they belong in time.
func (s *seen) add(more ...request) {
	for _, r := range more {
		i := 0
		for i < len(s.Requests) && !s.Requests[i].At.After(r.At) {
			i++
		}
		s.Requests = append(s.Requests[:i:i], append([]request{r}, s.Requests[i:]...)...)
	}
}

// lifeOf is a program that is looked at every third second and grows each time.
func lifeOf(looks int, goroutines, memory float64) (all []sample) {
	for i := range looks {
		all = append(all, sample{Program: witness, Started: 7, At: at(float64(3 * i)), Goroutines: 100 + goroutines*float64(i), Memory: 50<<20 + memory*float64(i)})
	}
	return all
}

func TestLeadersAndWritesAreCounted(t *testing.T) {
	s := sound()
	s.Deeds = []deed{{killed, pair[0], at(30), at(31)}, {killed, pair[0], at(50), at(51)}, {deleted, "alpha-h100", at(60), at(61)}}
	r := judge(s)
	assert.Equal(t, 3, r.Leaders, "one comes, goes, and is followed")
	assert.Equal(t, 1, r.Raised)
	assert.Equal(t, 1, r.Lowered)
	assert.Equal(t, map[string]int{"manager-1 killed": 2, "deleted": 1}, r.Done)
	var text, data bytes.Buffer
	r.print(&text)
	require.NoError(t, r.write(&data))
	assert.Contains(t, text.String(), "Nothing was wrong.")
	assert.Contains(t, data.String(), `"leaderChanges": 3`)
}

func TestMistakesInTheArguments(t *testing.T) {
	for _, args := range [][]string{{"--duration=30s"}, {"more"}, {"--seed=-1"}} {
		assert.Equal(t, 2, run(t.Context(), args, io.Discard, io.Discard), args)
	}
}

func TestWhatADeletedDeploymentLeaves(t *testing.T) {
	owned := func(uid, by types.UID) metav1.ObjectMeta {
		m := metav1.ObjectMeta{Name: string(uid), UID: uid}
		if by != "" {
			m.OwnerReferences = []metav1.OwnerReference{{UID: by, Controller: new(true)}}
		}
		return m
	}
	left := leftovers(
		[]appsv1.Deployment{{ObjectMeta: owned("d", "")}},
		[]appsv1.ReplicaSet{{ObjectMeta: owned("set", "d")}, {ObjectMeta: owned("old-set", "old-d")}},
		[]corev1.Pod{{ObjectMeta: owned("pod", "set")}, {ObjectMeta: owned("old-pod", "old-set")}, {ObjectMeta: owned("older-pod", "older-set")}, {ObjectMeta: owned("free", "")}},
	)
	var names []string
	for _, o := range left {
		names = append(names, o.GetName())
	}
	assert.Equal(t, []string{"old-set", "old-pod", "older-pod"}, names)
}
