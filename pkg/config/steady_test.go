package config_test

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/config"
)

func TestTheSameErrorHasTheSameText(t *testing.T) {
	address := func(text string) net.Addr { return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(text)) }
	broken := func(from string) error {
		return &net.OpError{Op: "read", Net: "tcp", Source: address(from), Addr: address("10.0.0.1:9090"), Err: errors.New("reset")}
	}
	expired := x509.CertificateInvalidError{Reason: x509.Expired, Detail: "current time 2026-11-28T22:00:00Z is after 2026-01-01T00:00:00Z"}
	for want, err := range map[string]error{
		"read tcp 10.0.0.1:9090: reset":                                                                 broken("10.0.0.7:41234"),
		"a: read tcp 10.0.0.1:9090: reset\nb":                                                           errors.Join(fmt.Errorf("a: %w", broken("[fd00::7]:41234")), errors.New("b")),
		"lookup p on 10.96.0.10:53: read udp 10.96.0.10:53: i/o timeout":                                &net.DNSError{Name: "p", Server: "10.96.0.10:53", Err: "read udp 10.0.0.7:41234->10.96.0.10:53: i/o timeout"},
		"x509: certificate has expired or is not yet valid: current time is after 2026-01-01T00:00:00Z": expired,
		"scaled a -> b, at the current time":                                                            errors.New("scaled a -> b, at the current time"),
		"b: tcp 10.0.0.1:9090: connection reset by peer":                                                errors.New("b: write tcp 10.0.0.7:41234->10.0.0.1:9090: write: connection reset by peer"),
		"c: tcp 10.0.0.1:9090: connection reset by peer":                                                errors.New("c: write tcp 10.0.0.7:41234->10.0.0.1:9090: write: broken pipe"),
		"e: tcp 10.0.0.1:9090: connection reset by peer":                                                errors.New("e: write tcp 10.0.0.7:41234->10.0.0.1:9090: use of closed network connection"),
		"d: tcp 10.0.0.1:9090: connection reset by peer":                                                errors.New("d: read tcp 10.0.0.7:41234->10.0.0.1:9090: read: connection reset by peer"),
		"dial tcp 10.0.0.1:9090: connect: refused":                                                      errors.New("dial tcp 10.0.0.1:9090: connect: refused"),
	} {
		require.EqualError(t, config.StableError(err), want)
		assert.ErrorIs(t, config.StableError(err), err)
	}
	assert.NoError(t, config.StableError(nil))

	late := &net.OpError{Op: "read", Net: "tcp", Source: address("10.0.0.7:41234"), Addr: address("10.0.0.1:9090"), Err: context.DeadlineExceeded}
	require.ErrorIs(t, config.StableError(late), context.DeadlineExceeded, "what it is stays")
	var timeout net.Error
	require.ErrorAs(t, config.StableError(late), &timeout)
}
