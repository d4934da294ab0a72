package config

import (
	"net/url"
	"strings"
)

// Location is an address as logs, errors and objects may name it: whoever reads those may not know
// what its user info, its query and its fragment hold, which can be a key.
func Location(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "(an address that cannot be read, which is not shown)"
	}
	u.User, u.RawQuery, u.ForceQuery, u.Fragment, u.RawFragment = nil, "", false, "", ""
	return u.String()
}

// located are addresses with commas between them, without what is not shown, and whether there is
// such a thing: a change of it alone is a change, too.
func located(addresses string) string {
	parts := strings.Split(addresses, ",")
	for i := range parts {
		parts[i] = Location(strings.TrimSpace(parts[i]))
	}
	shown := strings.Join(parts, ",")
	if strings.ContainsAny(addresses, "?#") {
		shown += " (and a query, which is not shown)"
	}
	return shown
}
