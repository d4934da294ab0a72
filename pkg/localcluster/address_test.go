package localcluster

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTwoClustersHaveDifferentBlocks(t *testing.T) {
	first, err := reserveBlock()
	require.NoError(t, err)
	defer first.release()
	second, err := reserveBlock()
	require.NoError(t, err)
	defer second.release()
	assert.NotEqual(t, first.prefix(), second.prefix())
	assert.NotEqual(t, cluster.block.prefix(), first.prefix(), "the running cluster keeps its block")
}

// Two addresses for one program are asked for before it listens at either.
func TestAPortIsGivenOnce(t *testing.T) {
	block, err := reserveBlock()
	require.NoError(t, err)
	defer block.release()
	given := map[int]bool{}
	for range 2000 { // of about 28,000: without a memory, one comes twice for certain
		port, err := block.freePort()
		require.NoError(t, err)
		require.False(t, given[port], "%d", port)
		given[port] = true
	}
}

func TestPodAddresses(t *testing.T) {
	tests := []struct {
		name string
		used []string
		next string
	}{
		{"the first is not the network's own", nil, "127.20.0.1"},
		{"goes on behind the highest in use", []string{"127.20.0.7", "127.20.1.255", "127.20.0.9"}, "127.20.2.0"},
		{"other blocks, the programs' own addresses and empty ones do not count", []string{"127.21.3.3", "127.20.255.1", "10.0.0.9", "::1", ""}, "127.20.0.1"},
		{"starts over before the programs' own addresses", []string{"127.20.254.255"}, "127.20.0.1"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			addresses, err := NewPodAddresses("127.20.0.0/16")
			require.NoError(t, err)
			for _, used := range test.used {
				addresses.Skip(used)
			}
			assert.Equal(t, test.next, addresses.Next())
		})
	}
}

func TestPodAddressesAreDifferentUntilAllWereUsed(t *testing.T) {
	addresses, err := NewPodAddresses("127.20.0.0/16")
	require.NoError(t, err)
	given := map[string]bool{}
	for range lastOffset {
		given[addresses.Next()] = true
	}
	assert.Len(t, given, lastOffset)
	assert.Contains(t, given, "127.20.254.255")
	assert.NotContains(t, given, "127.20.255.0")
}

func TestPodAddressesWantABlockOfSixteenBits(t *testing.T) {
	for _, block := range []string{"", "127.20.0.1", "127.20.0.0/24", "fd00::/16"} {
		_, err := NewPodAddresses(block)
		assert.Error(t, err, block)
	}
}
