package simulation

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
)

// device is what is published about one kind of device: the data sheet's memory
// bandwidth and dense bf16 arithmetic with fp32 accumulation, and the fastest large
// bf16 product that was measured on it. The data sheet counts at a clock that the
// H100 cannot hold at its power limit while the RTX 4090 runs above it, so that only
// the measured one compares devices; what is left for the fitted share are the
// shapes of a model's matrices.
type device struct {
	bandwidth, sheet, measured float64
	// rows are those of the blocks in which its attention kernel computes; 0 where a block
	// holds the heads of a decoded token.
	rows int
	// kind is what its link to others follows from.
	kind capacity.Device
}

// flashRows are the rows of a block of FlashAttention 2.
const flashRows = 64

// devices are known by the name that the driver reports. The measured products are
// of one program on many machines, github.com/zzc0721/torch-performance-test-data;
// the median where there are several entries (four of the RTX 4090 with 24 GB, 162 to
// 173 TFLOP/s). Others agree: 794.5 for the H100 and 267.9 for the A100 in
// github.com/stas00/ml-engineering, 163.5 for the RTX 4090 in github.com/xytpai/gpuk.
// The H200 is the H100's chip at the same power. The RTX 4090's data sheet has 165.2
// for this kind of product (Nvidia's white paper of the Ada architecture); its 82.6
// are without tensor cores, its 330.3 with fp16 accumulation. The RTX PRO 6000's is an
// eighth of its 4,000 fp4 TOPS with sparsity.
//
// vLLM runs FlashAttention 2 on these devices but for those with Hopper's instructions, which
// have FlashAttention 3. FlashAttention 2 lets the query heads that share a key-value head
// share a block of 64 rows as long as every sequence has one query
// (github.com/vllm-project/flash-attention at 617264c: seqlenq_ngroups_swapped in
// csrc/flash_attn/flash_api.cpp, kBlockM in csrc/flash_attn/src/flash_fwd_launch_template.h).
// Beside the chunk of a prompt each head of each decoded token has a block of its own.
// FlashAttention 3 packs the heads always (should_pack_gqa in hopper/heuristics.h).
var devices = map[string]device{
	"NVIDIA H100 80GB HBM3":                             {bandwidth: 3350e9, sheet: 989.4e12, measured: 789.2e12, kind: capacity.Device{Accelerator: "H100"}},
	"NVIDIA H200":                                       {bandwidth: 4800e9, sheet: 989.4e12, measured: 789.2e12, kind: capacity.Device{Accelerator: "H200"}},
	"NVIDIA A100-SXM4-80GB":                             {bandwidth: 2039e9, sheet: 312e12, measured: 264.5e12, rows: flashRows, kind: capacity.Device{Accelerator: "A100"}},
	"NVIDIA A100-SXM4-40GB":                             {bandwidth: 1555e9, sheet: 312e12, measured: 246.3e12, rows: flashRows, kind: capacity.Device{Accelerator: "A100"}},
	"NVIDIA GeForce RTX 4090":                           {bandwidth: 1008e9, sheet: 165.2e12, measured: 166.6e12, rows: flashRows, kind: capacity.Device{Accelerator: "RTX4090"}},
	"NVIDIA RTX PRO 6000 Blackwell Server Edition":      {bandwidth: 1597e9, sheet: 500e12, measured: 417.3e12, rows: flashRows, kind: capacity.Device{Accelerator: "RTXPRO6000"}},
	"NVIDIA RTX PRO 6000 Blackwell Workstation Edition": {bandwidth: 1792e9, sheet: 500e12, measured: 368.4e12, rows: flashRows, kind: capacity.Device{Accelerator: "RTXPRO6000"}},
}

// modelNamed finds the figures of a model at the precisions of its weights and
// of its KV cache, in the words of vLLM's arguments. Its parameters are counted in tens
// of millions, as model cards do.
func modelNamed(name, dtype, cache string) (serving.ModelFigures, error) {
	m := serving.FiguresOf(name, serving.Arguments{CacheNumbers: cache})
	switch dtype = strings.TrimPrefix(dtype, "torch."); {
	case m.Layers == 0 || m.Windowed > 0 || m.Latent > 0:
		return m, fmt.Errorf("no published figures for the model %q; known are %s", name, strings.Join(rooflineModels(), ", "))
	case m.WeightBytes != 2 || !slices.Contains([]string{"bfloat16", "float16", "half", "auto"}, dtype):
		return m, fmt.Errorf("no published figures for %q at the dtype %q; known are bfloat16 and float16", name, dtype)
	case m.CacheBytes == 0:
		return m, fmt.Errorf("unknown precision %q of the KV cache; known are auto, bfloat16, float16 and fp8", cache)
	}
	const unit = 1e7
	m.Parameters = unit * math.Round(m.Parameters/unit)
	return m, nil
}

// deviceNamed finds the figures of so many devices of a name that share each layer,
// with the arithmetic as it was measured or that of the data sheet.
func deviceNamed(name string, count int, sheet bool) (deviceFigures, error) {
	d, ok := devices[name]
	if !ok {
		return deviceFigures{}, fmt.Errorf("no published figures for the device %q; known are %s", name, known(devices))
	}
	arithmetic := d.measured
	if sheet {
		arithmetic = d.sheet
	}
	figures := deviceFigures{Bandwidth: d.bandwidth * float64(count), Arithmetic: arithmetic * float64(count), Devices: count, Rows: d.rows}
	if figures.Link, ok = serving.LinkOf(d.kind); !ok && count > 1 {
		return figures, fmt.Errorf("no published figures of the link between several of the device %q", name)
	}
	return figures, nil
}

func known[T any](table map[string]T) string {
	return strings.Join(slices.Sorted(maps.Keys(table)), ", ")
}
