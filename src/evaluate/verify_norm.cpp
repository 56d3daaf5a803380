// Norms of octet verify.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "evaluate/verify_ops.h"
#include "evaluate/weight_scan.h"
#include "model/batch.h"
#include "op/norm_reference.h"

namespace octet {
namespace {

// Rows of one call: of usual size, so small that epsilon counts, with a few large elements; where
// the decoder watches, one more that is not finite.
constexpr int64_t kRows = 3;
constexpr int32_t kTag = 7;

// One place where the decoder normalises.
struct NormCall {
  std::string_view name;
  int64_t layer;
  const float* weight;  // on the device, or null
  int64_t width;
  bool residual;  // the sum with a delta comes first
  bool watched;   // out of place, with a flag per row; else in place
};

std::vector<NormCall> calls_of(const Model& model) {
  const ModelDims& d = model.plan.dims;
  const bool all_heads = model.config.qk_norm == QkNorm::AllHeads;
  std::vector<NormCall> calls;
  for (size_t i = 0; i < model.layers.size(); ++i) {
    const LayerWeights& w = model.layers[i];
    const auto layer = static_cast<int64_t>(i);
    const auto in_place = [&](std::string_view name, const float* weight, int64_t width) {
      if (weight != nullptr) calls.push_back({name, layer, weight, width, false, false});
    };
    calls.push_back({"norm before attention", layer, w.before_attention, d.hidden, i > 0, true});
    in_place("norm of q", w.q_norm, all_heads ? d.heads * d.head_dim : d.head_dim);
    in_place("norm of k", w.k_norm, all_heads ? d.kv_heads * d.head_dim : d.head_dim);
    in_place("norm after attention", w.after_attention, d.hidden);
    calls.push_back({"norm before MLP", layer, w.before_mlp, d.hidden, true, true});
    in_place("norm after MLP", w.after_mlp, d.hidden);
  }
  calls.push_back({"last norm", -1, model.final_norm, d.hidden, true, true});
  return calls;
}

// Inputs of a width, used for every norm that has it.
struct Inputs {
  Inputs(int64_t width, const OpCheckScope& scope)
      : x(random_values((kRows + 1) * width, scope.seed)),
        delta(random_values((kRows + 1) * width, scope.seed + 1)) {
    for (int64_t i = 0; i < width; ++i) {
      const auto small = static_cast<size_t>(width + i);
      x[small] *= 1e-4F;
      delta[small] *= 1e-4F;
      if (i % 64 == 5) x[static_cast<size_t>(2 * width + i)] *= 300;
    }
    if (scope.rounds_bf16()) {
      for (float& value : x) value = static_cast<float>(as_stored(DType::BF16, value));
      for (float& value : delta) value = static_cast<float>(as_stored(DType::BF16, value));
    }
    x[static_cast<size_t>(kRows * width + width / 2)] = std::numeric_limits<float>::infinity();
  }
  std::vector<float> x, delta;
};

class NormCheck {
 public:
  NormCheck(const OpCheckScope& scope, const Kernel<RmsNorm>& kernel)
      : scope_(scope), kernel_(kernel) {}

  OpCheck run() {
    for (const NormCall& call : calls_of(scope_.model)) {
      scope_.tick();
      check(call);
    }
    return std::move(comparison_).result();
  }

 private:
  void check(const NormCall& call) {
    const Inputs& in = inputs_.try_emplace(call.width, call.width, scope_).first->second;
    const auto count = static_cast<size_t>((kRows + (call.watched ? 1 : 0)) * call.width);
    DeviceArrays arrays(scope_);
    float* x = arrays.up(std::span(in.x).first(count));
    float* out = call.watched ? static_cast<float*>(arrays.bytes(count * sizeof(float))) : x;
    int32_t* flags = arrays.up(std::vector<int32_t>(kRows + 1, StepResult::kFinite));
    RmsNorm::Args args;
    args.x = x;
    args.x_stride = args.delta_stride = args.out_stride = args.width = call.width;
    args.delta = call.residual ? arrays.up(std::span(in.delta).first(count)) : nullptr;
    args.weight = call.weight;
    args.out = out;
    args.rows = kRows + (call.watched ? 1 : 0);
    args.epsilon = static_cast<float>(scope_.model.config.rms_epsilon);
    args.round_bf16 = scope_.rounds_bf16();
    args.not_finite = call.watched ? flags : nullptr;
    args.tag = kTag;
    launch(kernel_, args, scope_.stream);
    const std::vector<float> sums = summed(call, in);
    if (call.residual) compare_sums(call, arrays.down(x, sums.size()), sums);
    if (call.watched) compare_flags(call, arrays.down(flags, kRows + 1));
    if (call.weight == nullptr) return;
    const auto weight = arrays.down(call.weight, static_cast<size_t>(call.width));
    // Named as damaged; what float32 makes of it is no kernel's fault.
    if (std::any_of(weight.begin(), weight.end(),
                    [](float w) { return std::fabs(w) > kLargestPlausible; })) {
      return;
    }
    compare_rows(call, arrays.down(out, sums.size()), sums, weight);
  }

  // What is normalised: the finite rows after the addition.
  std::vector<float> summed(const NormCall& call, const Inputs& in) const {
    std::vector<float> sums(in.x.begin(), in.x.begin() + kRows * call.width);
    if (!call.residual) return sums;
    for (size_t i = 0; i < sums.size(); ++i) {
      sums[i] += in.delta[i];
      if (scope_.rounds_bf16()) sums[i] = static_cast<float>(as_stored(DType::BF16, sums[i]));
    }
    return sums;
  }

  void compare_sums(const NormCall& call, const std::vector<float>& got,
                    const std::vector<float>& sums) {
    for (size_t i = 0; i < sums.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      comparison_.equal({"residual", call.layer, at / call.width, at % call.width}, got[i],
                        sums[i]);
    }
  }

  void compare_flags(const NormCall& call, const std::vector<int32_t>& flags) {
    for (int64_t row = 0; row <= kRows; ++row) {
      comparison_.equal({"flag", call.layer, row, 0}, flags[static_cast<size_t>(row)],
                        row == kRows ? kTag : StepResult::kFinite);
    }
  }

  void compare_rows(const NormCall& call, const std::vector<float>& got,
                    const std::vector<float>& sums, const std::vector<float>& weight) {
    const auto epsilon = static_cast<float>(scope_.model.config.rms_epsilon);
    for (int64_t row = 0; row < kRows; ++row) {
      const auto begin = static_cast<size_t>(row * call.width);
      const std::vector<Expected> expected =
          norm_reference(&sums[begin], weight.data(), call.width, epsilon, scope_.rounds_bf16());
      for (size_t i = 0; i < expected.size(); ++i) {
        comparison_.compare({call.name, call.layer, row, static_cast<int64_t>(i)}, got[begin + i],
                            expected[i]);
      }
    }
  }

  const OpCheckScope& scope_;
  const Kernel<RmsNorm>& kernel_;
  std::map<int64_t, Inputs> inputs_;
  OpComparison comparison_;
};

}  // namespace

OpCheck check_norm(const OpCheckScope& scope, const Kernel<RmsNorm>& kernel) {
  return NormCheck(scope, kernel).run();
}

}  // namespace octet
