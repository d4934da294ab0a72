package configuration_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/llamastack/configuration"
)

func TestAddressesOfRedis(t *testing.T) {
	type address struct {
		host string
		port int
	}
	for endpoint, want := range map[string]address{
		"redis://redis.default.svc:6380": {"redis.default.svc", 6380},
		"redis://r":                      {"r", 6379},
		"r:1":                            {"r", 1},
		"r":                              {"r", 6379},
		"redis://r/":                     {"r", 6379},
		"redis://r:6379/0":               {"r", 6379},
		"redis://[::1]:7":                {"::1", 7},
	} {
		host, port, err := configuration.Redis(endpoint)
		require.NoError(t, err, endpoint)
		assert.Equal(t, want, address{host, port}, endpoint)
	}
	for endpoint, want := range map[string]string{
		"redis://:secret@r": "name the Secret in storage.kv.password",
		"redis://u@r":       "name the Secret in storage.kv.password",
		"rediss://r":        "only the scheme redis",
		"http://r":          "only the scheme redis",
		"redis://":          "no host",
		"redis://r/1":       "database 0",
		"redis://r?a=b":     "takes no options",
		"redis://r:0":       "between 1 and 65535",
		"redis://r:70000":   "between 1 and 65535",
		"redis://%zz":       "no URL",
	} {
		_, _, err := configuration.Redis(endpoint)
		assert.ErrorContains(t, err, want, endpoint)
		assert.NotContains(t, err.Error(), "secret")
	}
}

func TestConnectionStrings(t *testing.T) {
	parts := func(host, port, db, user, password string) map[string]string {
		return map[string]string{"host": host, "port": port, "db": db, "user": user, "password": password}
	}
	for text, want := range map[string]map[string]string{
		"postgresql://u:p@h:1/d":                         parts("h", "1", "d", "u", "p"),
		"postgres://u:p@h/d?sslmode=require":             parts("h", "5432", "d", "u", "p"),
		"postgresql+asyncpg://u:p%40%2F@h/d\n":           parts("h", "5432", "d", "u", "p@/"),
		"postgresql://u@":                                parts("localhost", "5432", "u", "u", ""),
		"host=h port=1 dbname=d user=u password=p":       parts("h", "1", "d", "u", "p"),
		"user = u  password = 'a b\\'c' sslmode=require": {"host": "localhost", "port": "5432", "db": "u", "user": "u", "password": "a b'c"},
		"user=u password=''":                             parts("localhost", "5432", "u", "u", ""),
	} {
		got, err := configuration.Postgres(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, got, text)
	}
	for text, want := range map[string]string{
		"postgresql://h/d":              "no user",
		"host=h password=hush":          "no user",
		"mysql://u:hush@h/d":            "another scheme",
		"postgresql://u:hush@h:x/d":     "no URL",
		"postgresql://u:hush@a:1,b:2/d": "",
		"hush":                          "neither a URL nor a list",
		"user=u password='hush":         "neither a URL nor a list",
		"user=u port=hush":              "port of the connection string",
		"user=u a hush=1":               "neither a URL nor a list",
		"":                              "no user",
	} {
		_, err := configuration.Postgres(text)
		require.ErrorContains(t, err, want, text)
		assert.NotContains(t, err.Error(), "hush", "the connection string is a secret")
	}
}
