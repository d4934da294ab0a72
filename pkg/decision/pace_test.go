package decision

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// However seldom replicas are scraped and however late that is known, a step is served and a fall
// is followed: within a time that grows with both.
func TestScrapesThatAreFarApartOrLate(t *testing.T) {
	const begin, end = 30 * time.Minute, time.Hour
	load := func(d time.Duration) float64 {
		if d >= begin && d < end {
			return 20
		}
		return 3
	}
	for _, direct := range []bool{true, false} {
		for _, every := range []time.Duration{5 * time.Second, 15 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute} {
			for _, late := range []time.Duration{0, 45 * time.Second} {
				t.Run(fmt.Sprintf("gateway %v, every %s, %s late", !direct, every, late), func(t *testing.T) {
					web := vesselOf("web", 2)
					m := &flow{id: "m", direct: direct, variants: []*vessel{web}, arrivals: load}
					f := newFluid(machines(8), DefaultPolicy(), m)
					f.every, f.late = every, late
					var served time.Duration
					most := 0
					for f.elapsed() < 2*time.Hour {
						f.step()
						most = max(most, web.replicas)
						if served == 0 && f.elapsed() > begin && web.count(serves) >= 8 {
							served = f.elapsed() - begin
						}
					}
					t.Logf("8 serve after %s, most %d, at the end %d; %v", served, most, web.replicas, f.writes)
					assert.NotZero(t, served)
					assert.LessOrEqual(t, served, 5*time.Minute+late+2*every)
					if every <= time.Minute {
						assert.LessOrEqual(t, most, 17, "what is fresh and often scraped leads to 15 and 16")
					}
					assert.LessOrEqual(t, most, 27, "what waits until it is seen asks for more")
					assert.LessOrEqual(t, web.replicas, 3)
				})
			}
		}
	}
}
