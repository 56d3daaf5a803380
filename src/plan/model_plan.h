#pragma once
// The plan of a whole model on one device: a kernel for every operation, the bytes, and every
// reason. Pure: made of values only, before a weight is read.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "num/kv_spec.h"
#include "num/model_dims.h"
#include "op/absmax.h"
#include "op/attention.h"
#include "op/gather.h"
#include "op/norm.h"
#include "op/pointwise.h"
#include "op/quantize.h"
#include "op/rope.h"
#include "op/sample.h"
#include "plan/resolve.h"
#include "plan/workspace.h"

namespace octet {

// How ranks share a linear layer: Column splits N (each rank makes some outputs), Row splits K
// (partial sums are added).
enum class Parallel : uint8_t { None, Column, Row };

// A linear layer of the model as the checkpoint stores it, whole.
struct PlanLayer {
  std::string module;   // "model.layers.3.self_attn.q_proj"
  std::string pattern;  // the same with the layer number as "*"
  LayerShape shape;
  Parallel parallel = Parallel::None;
  LayerQuant quant;
  bool bias = false;
};

// What a plan is made of, beside the device, the catalogue and the policy.
struct PlanRequest {
  std::string model;  // for messages
  std::string architecture;
  ModelDims dims;                 // whole model
  KvSpec kv;                      // whole model
  bool interleaved_rope = false;  // rotated pairs are neighbours
  std::string one_rank;           // why ranks cannot share the model at all, or empty
  std::vector<PlanLayer> layers;
  std::vector<std::string>
      unsupported;  // layers that no operation computes (experts), with the reason
  DType embedding = DType::BF16;
  uint64_t embedding_bytes = 0;  // as stored, shared by ranks; 0 when the head counts it
  uint64_t other_bytes = 0;      // norms, as stored; every rank has them
  std::vector<std::string> notes;
};

struct PlanOptions {
  Policy policy;
  int ranks = 1;
  int rank = 0;
  int64_t max_model_len = 0;       // tokens of one sequence; 0: the model's own limit, or what fits
  int64_t max_batch_tokens = 512;  // rows of one step
  int64_t max_sequences = 1;
  bool isa_limited = false;  // --max-isa took features from the device; for messages
};

// Layers that are alike: same pattern, shape on the rank, words of the checkpoint and policy.
struct PlannedLayers {
  std::string pattern;
  LayerShape shape;  // of one rank
  LayerQuant quant;
  bool bias = false;
  bool forced = false;            // bound by --kernel or --linear-backend
  std::string_view backend = {};  // the --linear-backend that binds them, or empty
  std::vector<size_t> members;    // indices into PlanRequest::layers
  Resolution resolution;
};

// The kernels of every operation that is not linear.
struct OpPlan {
  Selection<Kernel<Attention>> attention;
  Selection<Kernel<RmsNorm>> norm;
  Selection<Kernel<Rope>> rope;
  Selection<Kernel<SiluMul>> silu_mul;
  Selection<Kernel<RoundBf16>> round;
  Selection<Kernel<Gather>> embedding;
  Selection<Kernel<Gather>> gather_rows;  // of float32 activations
  Selection<Kernel<ArgMax>> argmax;
  Selection<Kernel<TopK>> topk;
  Selection<Kernel<LogProb>> logprob;
  Selection<Kernel<Sample>> sample;
  Selection<Kernel<AbsMax>> absmax;  // calibration only
  // One per distinct input of the linear layers: bfloat16, or codes with scales.
  std::vector<std::pair<QuantSpec, Selection<Kernel<Quantize>>>> quantize;
};

// Bytes of one rank.
struct Budget {
  uint64_t weights = 0;  // codes as stored plus what kernels copy
  uint64_t copied = 0;   // of it: scales, biases and repacked layouts in device memory
  uint64_t kv_per_token = 0;
  uint64_t scratch = 0;
  uint64_t device = 0;        // what the device has
  int64_t max_model_len = 0;  // tokens planned for
  int64_t fits_tokens = 0;    // the largest max_model_len that fits, its scratch counted

  uint64_t kv() const { return kv_per_token * static_cast<uint64_t>(max_model_len); }
};

struct ModelPlan {
  PlanRequest request;
  PlanOptions options;
  DeviceInfo device;
  ModelDims dims;  // of this rank
  KvSpec kv;       // of this rank
  std::vector<PlannedLayers> layers;
  std::vector<size_t> layer_group;  // PlanRequest::layers index -> index into `layers`
  OpPlan ops;
  WorkspaceSizes workspace;
  Budget budget;
  std::vector<std::string> notes;
  std::vector<std::string> failures;  // why it cannot run; empty: planned
  int ranks_requested = 1;            // options.ranks is 1 where so many cannot share the model
  std::vector<int> ranks_possible;    // numbers of ranks that can, ascending
};

// Makes the plan. Throws BadInput when --kernel binds nothing; what cannot run is a failure inside
// the plan. Ranks that cannot share the model are one: the plan is then that of one rank.
ModelPlan make_plan(PlanRequest request, const DeviceInfo& device, PlanOptions options);

// Throws CannotRun with the plan's failures, if there are any.
void require_runnable(const ModelPlan& plan);

// The share of one rank. Throws CannotRun when the heads or the MLP cannot be shared evenly.
ModelDims rank_dims(const ModelDims& dims, int ranks);
LayerShape rank_shape(const PlanLayer& layer, int ranks);

// The numbers of ranks that can share the model evenly, ascending; 1 is always one.
std::vector<int> possible_ranks(const PlanRequest& request);

// Why `ranks` ranks cannot share the model evenly, with the numbers of ranks that can; nullopt:
// they can.
std::optional<std::string> unshareable(const PlanRequest& request, int ranks);

}  // namespace octet
