// Rotary embedding of octet verify.
#include <algorithm>
#include <array>

#include "evaluate/verify_ops.h"
#include "model/rope_angles.h"
#include "num/tensor.h"
#include "op/rope_reference.h"

namespace octet {
namespace {

// Two sequences: one begins, one comes to the end of the context.
constexpr int64_t kSequences = 2, kSequenceRows = 4, kRows = kSequences * kSequenceRows;
constexpr std::byte kUntouched{0xA5};

class RopeCheck {
 public:
  RopeCheck(const OpCheckScope& scope, const Kernel<Rope>& kernel)
      : scope_(scope), kernel_(kernel), arrays_(scope) {
    const ModelPlan& plan = scope.model.plan;
    const ModelDims& d = plan.dims;
    args_.q_stride = d.heads * d.head_dim;
    args_.k_stride = args_.v_stride = d.kv_heads * d.head_dim;
    args_.kv_dtype = plan.kv.dtype;
    args_.block_size = plan.kv.block_size;
    args_.rows = kRows;
    args_.heads = d.heads;
    args_.kv_heads = d.kv_heads;
    args_.head_dim = d.head_dim;
    args_.rotary_dim = d.rotary_dim;
    args_.k_scale = plan.kv.k_scale.value_or(1);
    args_.v_scale = plan.kv.v_scale.value_or(1);
    args_.interleaved = scope.model.config.interleaved_rope;
    args_.round_bf16 = scope.rounds_bf16();
    q_ = random_values(kRows * args_.q_stride, scope.seed);
    k_ = random_values(kRows * args_.k_stride, scope.seed + 1);
    v_ = random_values(kRows * args_.v_stride, scope.seed + 2);
    place_rows();
  }

  OpCheck run() {
    Rope::Args args = args_;
    const std::vector<std::byte> untouched(cache_bytes(), kUntouched);
    float* q = arrays_.up(q_);
    auto* k_cache = arrays_.up(untouched);
    auto* v_cache = arrays_.up(untouched);
    args.q = q;
    args.k = arrays_.up(k_);
    args.v = arrays_.up(v_);
    args.positions = arrays_.up(angle_rows_);
    args.cos_sin = arrays_.up(angles_);
    args.slots = arrays_.up(slots_);
    args.k_cache = k_cache;
    args.v_cache = v_cache;
    launch(kernel_, args, scope_.stream);
    compare_q(arrays_.down(q, q_.size()));
    compare_cache("key", k_, arrays_.down(k_cache, untouched.size()), true);
    compare_cache("value", v_, arrays_.down(v_cache, untouched.size()), false);
    return std::move(comparison_).result();
  }

 private:
  size_t cache_bytes() const {
    return static_cast<size_t>(blocks_ * args_.kv_heads * args_.block_size * args_.head_dim *
                               bytes_of(args_.kv_dtype));
  }

  // Positions, their angles and slots. Rows of the table of angles are in another order than rows.
  void place_rows() {
    const RopeConfig& rope = scope_.model.config.rope;
    const int64_t context = scope_.model.plan.budget.max_model_len;
    angles_.resize(static_cast<size_t>(kRows * args_.rotary_dim));
    // Blocks of both sequences, in turns and backwards.
    blocks_ = 2 * kSequences + 1;
    for (int64_t s = 0; s < kSequences; ++s) {
      const int64_t first = s == 0 ? 0 : std::max<int64_t>(0, context - kSequenceRows);
      const std::vector<float> frequencies = rope_frequencies(
          rope, args_.rotary_dim, s == 0 ? std::min(context, kSequenceRows) : context);
      for (int64_t i = 0; i < kSequenceRows; ++i) {
        const auto position = static_cast<int32_t>(first + i);
        const auto angle_row = static_cast<int32_t>(kRows - 1 - s * kSequenceRows - i);
        rope_angles(frequencies, static_cast<float>(rope.attention_factor), std::array{position},
                    angles_.data() + angle_row * args_.rotary_dim);
        angle_rows_.push_back(angle_row);
        const int64_t turn = position / args_.block_size - first / args_.block_size;
        const int64_t block = blocks_ - 1 - (kSequences * (turn % 2) + s);
        slots_.push_back(block * args_.block_size + position % args_.block_size);
      }
    }
  }

  // Head `head` of row `row` of q or k.
  Expected rotated(const std::vector<float>& x, int64_t stride, int64_t row, int64_t head,
                   int64_t d) const {
    return rotated_reference(
        args_, x.data() + row * stride + head * args_.head_dim,
        angles_.data() + angle_rows_[static_cast<size_t>(row)] * args_.rotary_dim, d);
  }

  void compare_q(const std::vector<float>& got) {
    for (int64_t i = 0; i < static_cast<int64_t>(got.size()); ++i) {
      const int64_t row = i / args_.q_stride;
      const int64_t column = i % args_.q_stride;
      comparison_.compare(
          {"q", -1, row, column}, got[static_cast<size_t>(i)],
          rotated(q_, args_.q_stride, row, column / args_.head_dim, column % args_.head_dim));
    }
  }

  // Every slot that was to be written, and that no other byte was.
  void compare_cache(std::string_view name, const std::vector<float>& source,
                     std::vector<std::byte> cache, bool of_k) {
    const int64_t dim = args_.head_dim;
    const int64_t width = bytes_of(args_.kv_dtype);
    for (int64_t row = 0; row < kRows; ++row) {
      const int64_t slot = slots_[static_cast<size_t>(row)];
      for (int64_t head = 0; head < args_.kv_heads; ++head) {
        const int64_t at = ((slot / args_.block_size * args_.kv_heads + head) * args_.block_size +
                            slot % args_.block_size) *
                           dim;
        for (int64_t d = 0; d < dim; ++d) {
          const auto from = static_cast<size_t>(row * args_.k_stride + head * dim + d);
          const Expected e =
              of_k ? rotated(source, args_.k_stride, row, head, d) : Expected{source[from], 0};
          comparison_.compare({name, -1, row, head * dim + d},
                              element({cache.data(), args_.kv_dtype, {}, 0}, at + d),
                              cached_reference(args_, e, of_k ? args_.k_scale : args_.v_scale));
        }
        std::fill_n(cache.begin() + at * width, dim * width, kUntouched);
      }
    }
    const auto written = std::count_if(cache.begin(), cache.end(),
                                       [](std::byte byte) { return byte != kUntouched; });
    comparison_.equal({"bytes written to other slots", -1, of_k ? 0 : 1, 0},
                      static_cast<double>(written), 0);
  }

  const OpCheckScope& scope_;
  const Kernel<Rope>& kernel_;
  DeviceArrays arrays_;
  Rope::Args args_;
  int64_t blocks_ = 0;
  std::vector<float> q_, k_, v_, angles_;
  std::vector<int32_t> angle_rows_;
  std::vector<int64_t> slots_;
  OpComparison comparison_;
};

}  // namespace

OpCheck check_rope(const OpCheckScope& scope, const Kernel<Rope>& kernel) {
  return RopeCheck(scope, kernel).run();
}

}  // namespace octet
