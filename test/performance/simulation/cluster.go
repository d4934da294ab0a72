package simulation

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"slices"
	"strings"
	"unicode"
)

// instance is one engine as a run's config.json describes it, in the form of a cluster
// that LLMServingSim reads. Its link is left out: its bandwidth and latency are those
// with which that simulator meets the run, and not published of the device.
type instance struct {
	Model    string `json:"model_name"`
	Hardware string `json:"hardware"`
	Memory   struct {
		// Size is in GiB, Bandwidth in GB/s.
		Size      float64 `json:"mem_size"`
		Bandwidth float64 `json:"mem_bw"`
	} `json:"npu_mem"`
	Devices  int `json:"num_npus"`
	Tensor   int `json:"tp_size"`
	Pipeline int `json:"pp_size"`
	// Group is shared by the engines of one server, Part what it does of a request if
	// not all.
	Group *string `json:"dp_group"`
	Part  *string `json:"pd_type"`
}

// cluster is what config.json says: alike engines, which are one server if grouped.
type cluster struct {
	instance
	engines int
	grouped bool
}

// readCluster reads config.json; ok is false where there is none.
func readCluster(path string) (c cluster, ok bool, err error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return c, false, nil
	}
	if err != nil {
		return c, false, fmt.Errorf("read the run's cluster: %w", err)
	}
	var file struct {
		Nodes []struct {
			Instances []instance `json:"instances"`
		} `json:"nodes"`
	}
	if err := json.Unmarshal(text, &file); err != nil {
		return c, false, fmt.Errorf("%s: %w", path, err)
	}
	var all []instance
	for _, n := range file.Nodes {
		all = append(all, n.Instances...)
	}
	if len(all) == 0 {
		return c, false, fmt.Errorf("%s: expected nodes with instances", path)
	}
	c = cluster{instance: all[0], engines: len(all), grouped: all[0].Group != nil}
	if c.grouped && len(file.Nodes) > 1 {
		return c, false, fmt.Errorf("%s: one server on %d nodes; the links between nodes are not modelled", path, len(file.Nodes))
	}
	for i, other := range all {
		if err := c.check(other); err != nil {
			return c, false, fmt.Errorf("%s: instance %d: %w", path, i+1, err)
		}
	}
	return c, true, nil
}

// check says what of an instance is not modelled.
func (c cluster) check(i instance) error {
	group := func(i instance) string {
		if i.Group == nil {
			return ""
		}
		return *i.Group
	}
	switch {
	case i.Hardware == "":
		return errors.New("expected the name of its hardware")
	case i.Part != nil && *i.Part != "":
		return fmt.Errorf("it does %s alone; prefill and decode on engines of their own are not modelled", *i.Part)
	case i.Pipeline > 1 || i.Devices > max(1, i.Tensor):
		return fmt.Errorf("%d devices of which %d share each layer; pipeline parallelism is not modelled", i.Devices, max(1, i.Tensor))
	case i.Model != c.Model || i.Hardware != c.Hardware || i.Memory != c.Memory || i.Tensor != c.Tensor || group(i) != group(c.instance):
		return errors.New("it differs from the first in model, hardware, memory, tp_size or dp_group; expected engines that are alike")
	}
	return nil
}

// product finds the device among those with published figures: the one whose name
// contains that of the hardware and whose memory has the bandwidth, if it is said.
func (i instance) product() (string, error) {
	plain := func(name string) string {
		return strings.Map(func(r rune) rune {
			if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
				return -1
			}
			return unicode.ToUpper(r)
		}, name)
	}
	const near = 0.01
	var found []string
	for name, d := range devices {
		bandwidth := i.Memory.Bandwidth * 1e9
		if strings.Contains(plain(name), plain(i.Hardware)) && (bandwidth == 0 || math.Abs(d.bandwidth-bandwidth) <= near*bandwidth) {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return "", fmt.Errorf("no published figures for the hardware %q with a memory of %v GB/s; known are %s", i.Hardware, i.Memory.Bandwidth, known(devices))
	}
	return "", fmt.Errorf("the hardware %q with a memory of %v GB/s may be each of %s", i.Hardware, i.Memory.Bandwidth, strings.Join(found, ", "))
}
