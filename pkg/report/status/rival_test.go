package status

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/report/sentence"
)

// versioned is the object as it is when its status was written so often.
func versioned(version int, class string) *v1alpha1.VariantAutoscaling {
	return &v1alpha1.VariantAutoscaling{
		ObjectMeta: metav1.ObjectMeta{UID: "v", ResourceVersion: strconv.Itoa(version)},
		Status:     v1alpha1.VariantAutoscalingStatus{ServiceClass: class},
	}
}

// Two managers that decide otherwise write one status every ten seconds.
func TestTwoManagersWriteOneStatus(t *testing.T) {
	type manager struct {
		Rivals
		class  string
		writes int
	}
	version, stands, managers := 1, versioned(1, ""), []*manager{{class: "a"}, {class: "b"}}
	round := func(now time.Time) (all []bool) {
		for _, m := range managers {
			f, found := m.Look(stands, now)
			all = append(all, found)
			if found {
				assert.Equal(t, "another manager keeps writing this status: this one writes it every 5 minutes; end one, or give each a controller instance", sentence.Of(f.Detail))
			}
			if !m.Rests(stands, &stands.Status, now) && stands.Status.ServiceClass != m.class {
				version++
				stands = versioned(version, m.class)
				m.Begin("v", now)
				m.Wrote(stands)
				m.writes++
			}
		}
		return all
	}
	now := noon
	for ; now.Before(noon.Add(time.Hour)); now = now.Add(10 * time.Second) {
		found := round(now)
		assert.Equal(t, now.Sub(noon) >= 20*time.Second, found[0] && found[1], now)
	}
	for _, m := range managers {
		assert.LessOrEqual(t, m.writes, 3+12, "three until it is known, and then every five minutes")
		assert.GreaterOrEqual(t, m.writes, 12, "it says what it knows from time to time")
	}

	// The second one ends.
	managers = managers[:1]
	last := now
	for ; now.Before(last.Add(2 * time.Hour)); now = now.Add(10 * time.Second) {
		found := round(now)
		if now.Sub(last) > rivalry+truce {
			assert.False(t, found[0], now)
		}
	}
	assert.Equal(t, "a", stands.Status.ServiceClass)
	assert.False(t, managers[0].Rests(stands, &stands.Status, now))
}

// A conflict over the replicas is told at once, and once.
func TestAConflictOverTheReplicasDoesNotRest(t *testing.T) {
	over := v1alpha1.VariantAutoscalingStatus{Conditions: []metav1.Condition{{
		Type: v1alpha1.ConditionConflict, Status: metav1.ConditionTrue, Reason: string(decision.ReasonReplicasOverwritten),
	}}}
	var r Rivals
	for i := range 3 {
		stands := versioned(2*i+1, "theirs")
		r.Look(stands, noon)
		r.Begin("v", noon)
		ours := versioned(2*i+2, "ours")
		r.Wrote(ours)
	}
	stands := versioned(6, "ours")
	assert.True(t, r.Rests(stands, &stands.Status, noon.Add(time.Minute)))
	assert.False(t, r.Rests(stands, &over, noon.Add(time.Minute)))
	stands.Status.Conditions = over.Conditions
	assert.True(t, r.Rests(stands, &over, noon.Add(time.Minute)))
}

func TestWhatIsNoRival(t *testing.T) {
	wrote := func(r *Rivals, object *v1alpha1.VariantAutoscaling, at time.Time) {
		r.Begin(object.UID, at)
		r.Wrote(object)
	}
	none := func(t *testing.T, r *Rivals, stands *v1alpha1.VariantAutoscaling, at time.Duration) {
		t.Helper()
		_, found := r.Look(stands, noon.Add(at))
		assert.False(t, found)
		assert.False(t, r.Rests(stands, &stands.Status, noon.Add(at)))
	}
	t.Run("the leader before", func(t *testing.T) {
		var r Rivals
		none(t, &r, versioned(1, "before"), 0)
	})
	t.Run("a status on its way", func(t *testing.T) {
		var r Rivals
		for i := range 5 {
			wrote(&r, versioned(2*i, "a"), noon)
			r.Begin("v", noon)
			none(t, &r, versioned(2*i+1, "b"), time.Duration(i)*time.Minute)
		}
	})
	t.Run("changes of the spec", func(t *testing.T) {
		var r Rivals
		wrote(&r, versioned(0, "a"), noon)
		for i := range 5 {
			none(t, &r, versioned(1+i, "a"), time.Duration(i)*time.Minute)
		}
	})
	t.Run("somebody by hand, now and then", func(t *testing.T) {
		var r Rivals
		for i := range 5 {
			at := time.Duration(i) * (rivalry + time.Minute)
			wrote(&r, versioned(3*i, "a"), noon.Add(at))
			none(t, &r, versioned(3*i+1, "b"), at)
			none(t, &r, versioned(3*i+2, "c"), at+time.Second)
		}
	})
	t.Run("an object that is gone", func(t *testing.T) {
		var r Rivals
		wrote(&r, versioned(1, "a"), noon)
		r.Keep(nil)
		assert.Empty(t, r.of)
	})
}
