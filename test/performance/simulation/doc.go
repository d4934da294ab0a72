// Package simulation judges the queueing engine of pkg/simulation against real
// model servers: a sweep of constant-rate runs, point by point, and recorded runs of
// vLLM, request by request with that server's limits.
//
// How long an iteration takes follows from the published figures of the model and
// of the device (roofline), from published times of single kernels (usual), and from two
// constants: what every iteration takes beside the device's work, and the share of the
// published arithmetic that is reached. They are fitted to the means of half of the sweep's token shapes (the
// black fields of a checkerboard over the two length axes) and judged on the other
// half, both ways round; the recorded runs, on other devices, are judged with the
// same constants of either half.
//
// A recorded run may be of several devices that share each layer, of a mixture of
// experts, and of several engines behind one address: of a server with data
// parallelism, or of servers apart. Its config.json, in the form of LLMServingSim's
// clusters, says of the hardware what meta.json does not; a KV cache whose size nobody
// says is what the weights leave of the memory. A prefix cache finds what the hash_ids
// of requests.jsonl say, in the form of Mooncake's traces, and nothing without them.
// The prompts of an iteration make decoding beside them slower, as its attention kernel
// has it (devices). A server that schedules while the device computes (vLLM from 0.14 on)
// takes nothing beside the device's work, and a request waits for one more iteration.
// What is not modelled is refused with its name: pipelines, engines for prefill or
// decode alone, quantized weights, experts shared by engines of several devices each,
// and what has no published figures.
//
// Of the sweep, every row of a constant rate counts whose rate of completed
// requests is at most 0.8 of that of the shape's throughput row. The synchronous
// rows are left out: one client that waits for its answer has no rate.
//
// The sweep was taken by a client, the run inside the engine. A client is taken to
// have a token one iteration after the engine: vLLM detokenizes and streams the
// tokens of an iteration in another process while the next one runs.
package simulation
