package controller

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"

	"llmd.ai/workload-variant-autoscaler/pkg/inventory"
	"llmd.ai/workload-variant-autoscaler/pkg/round"
)

func TestPermissionsThatComeAndGo(t *testing.T) {
	const lacks = "the permission to list nodes is missing"
	full, blind := Access{Capacity: true, Victims: true, ScaledObjects: true}, Access{Missing: lacks, Victims: true, ScaledObjects: true}
	with := func(a Access, missing string) Access {
		a.Capacity, a.Missing = missing == "", missing
		return a
	}
	unarmed := full
	unarmed.Victims = false
	without := func(u inventory.Unread) Access {
		a := full
		a.Unread = u
		return a
	}
	quotas, both := inventory.Unread{Quotas: true}, inventory.Unread{Quotas: true, Budgets: true}
	cases := []struct {
		name          string
		start         Access
		answers, want []Access
	}{
		{"all stays", full, []Access{full, full}, []Access{full, full}},
		{"it is lost", full, []Access{full, blind}, []Access{full, blind}},
		{"it comes back, which the watches notice later", full,
			[]Access{blind, full, full, full, full},
			[]Access{blind, with(full, grantedAgain), with(full, grantedAgain), with(full, grantedAgain), full}},
		{"it comes back and goes again", full,
			[]Access{blind, full, full, full, blind, full},
			[]Access{blind, with(full, grantedAgain), with(full, grantedAgain), with(full, grantedAgain), blind, with(full, grantedAgain)}},
		{"it was missing from the start", blind, []Access{blind, full, full, full, full, full},
			[]Access{blind, with(full, grantedSince), with(full, grantedSince), with(full, grantedSince), with(full, grantedSince), with(full, grantedSince)}},
		{"the choice of replicas follows at once", full, []Access{unarmed, full}, []Access{unarmed, full}},
		{"a kind is lost, then another, and both come back, which the watches notice later", full,
			[]Access{without(quotas), without(inventory.Unread{Budgets: true}), full, full, full, full, full},
			[]Access{without(quotas), without(both), without(both), without(both), without(both), full, full}},
		{"a kind was missing from the start", without(quotas), []Access{full, full, full, full, full},
			[]Access{without(quotas), without(quotas), without(quotas), without(quotas), without(quotas)}},
		{"a kind that comes later is not watched", Access{Capacity: true}, []Access{full}, []Access{{Capacity: true, Victims: true}}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			asked := 0
			p := newPermissions(c.start, func(context.Context) (Access, error) {
				asked++
				return c.answers[asked-1], nil
			}, newTrigger())
			for i, want := range c.want {
				was := *p.current.Load()
				p.look(t.Context())
				assert.Equal(t, want, *p.current.Load(), "answer %d", i+1)
				assert.Equal(t, was != want, p.trigger.take() == round.Soon, "a round looks at a change, answer %d", i+1)
			}
		})
	}
}

func TestNoAnswerTakesNothingAway(t *testing.T) {
	p := newPermissions(Access{Capacity: true}, func(context.Context) (Access, error) {
		return Access{Missing: "everything"}, errors.New("no answer")
	}, newTrigger())
	p.look(t.Context())
	assert.Equal(t, Access{Capacity: true}, *p.current.Load())
}
