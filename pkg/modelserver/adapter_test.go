package modelserver

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestAdaptersOfOneServer(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	ago := func(d time.Duration) float64 { return float64(now.Add(-d).Unix()) }
	many := strings.Repeat("x,", 3*MostAdapters)
	var names []string
	for i := range 3 * MostAdapters {
		names = append(names, fmt.Sprint("n", i))
	}
	for name, c := range map[string]struct {
		lists []AdapterList
		want  []string
	}{
		"none":                         {nil, nil},
		"nothing is in use":            {[]AdapterList{{ago(0), "", ""}}, nil},
		"in service and waiting":       {[]AdapterList{{ago(0), "sql,chat", "sql"}}, []string{"chat", "sql"}},
		"of several times":             {[]AdapterList{{ago(0), "sql", ""}, {ago(time.Minute), "chat", ""}}, []string{"chat", "sql"}},
		"one that is out of use":       {[]AdapterList{{ago(0), "sql", ""}, {ago(2 * time.Hour), "chat", ""}}, []string{"sql"}},
		"names of organisations":       {[]AdapterList{{ago(0), "acme/sql-lora, acme/chat", ""}}, []string{"acme/chat", "acme/sql-lora"}},
		"what is no time":              {[]AdapterList{{math.NaN(), "sql", ""}, {1, "chat", ""}, {ago(0), "ok", ""}}, []string{"ok"}},
		"times that are added up":      {[]AdapterList{{2 * ago(0), "sql", ""}}, []string{"sql"}},
		"what no object may have":      {[]AdapterList{{ago(0), "a\nb,c\u202ed," + strings.Repeat("l", 129) + ",e\xff,fine", ""}}, []string{"fine"}},
		"the same again and again":     {[]AdapterList{{ago(0), many, many}}, []string{"x"}},
		"many, of which few are newer": {[]AdapterList{{ago(time.Minute), strings.Join(names, ","), ""}, {ago(0), "zz", ""}}, append([]string{}, append(names[:MostAdapters-1:MostAdapters-1], "zz")...)},
	} {
		assert.ElementsMatch(t, c.want, AdaptersOf(c.lists, now), name)
		assert.IsIncreasing(t, append([]string{""}, AdaptersOf(c.lists, now)...), name)
	}
}
