package episode

import (
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/replay"
	"llmd.ai/workload-variant-autoscaler/pkg/workload"
	"llmd.ai/workload-variant-autoscaler/test/performance/front"
	"llmd.ai/workload-variant-autoscaler/test/performance/lesson"
	_ "llmd.ai/workload-variant-autoscaler/test/performance/rival" // the policies of others
)

// policies play the episode, in the order of the table: ours, the recipe that it is published
// for, and the others.
var policies = []string{
	"hybrid", "capacity-only", "llmd-slo", "llmd-slo:histograms=vllm", "llmd-queue", "llmd-saturation", "llmd-tokens",
	"hpa:queue", "keda:queue", "kpa", "planner", "static:8",
}

// seedsOfLessons are so much later than those of the episodes.
const seedsOfLessons = 1000

// play is one episode of each policy: attainment, and as cost the mean replicas.
func play(seed uint64, policies []string) ([]front.Point, error) {
	s, err := world()
	if err != nil {
		return nil, err
	}
	s.Collection.Later = time.Duration(seed) * time.Second
	source := func(phases []phase, after time.Duration, seed uint64) replay.Source {
		return func() (workload.Stream, error) { return newLoad(phases, after, seed), nil }
	}
	options := replay.TrialOptions{Scenario: s, Startups: []time.Duration{startup}, Seed: seed, Source: source(scored, drain, seed)}
	earlier := options
	earlier.Source = source(burnIn, 0, seed+seedsOfLessons)
	learned, err := lesson.Learn(earlier)
	if err != nil {
		return nil, err
	}
	options.Before = learned.Of
	trial, err := replay.NewTrial(options)
	if err != nil {
		return nil, err
	}
	points := make([]front.Point, len(policies))
	for i, policy := range policies {
		result, recording, err := trial.Play(replay.Play{Policy: policy, Startup: startup, Record: true})
		if err != nil {
			return nil, err
		}
		points[i] = front.Point{Attainment: result.Attainment, Cost: replicas(recording.Decisions, length(scored))}
	}
	return points, nil
}

// replicas are the mean wanted ones from the beginning, with the least, until the load has ended
// and they are back there, as the published score has it.
func replicas(changes []replay.RecordedDecision, loaded time.Duration) float64 {
	now, since, sum := least, time.Duration(0), 0.0
	end := loaded
	for _, c := range changes {
		if c.At > loaded && now == least {
			break
		}
		sum += float64(now) * (c.At - since).Seconds()
		now, since = c.To, c.At
		end = max(loaded, c.At)
	}
	sum += float64(now) * (end - since).Seconds()
	return sum / end.Seconds()
}
