#include "testing/reference_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "num/f8.h"

namespace octet {
namespace {

using Row = std::vector<double>;
using Rows = std::vector<Row>;

constexpr double kEpsilon = 1e-5;

class Reference {
 public:
  Reference(const TinyCheckpoint& checkpoint, const TinyModel& model,
            const ReferenceDetails& details)
      : checkpoint_(checkpoint), model_(model), details_(details) {}

  Rows logits(std::span<const int32_t> ids) const {
    const Row& table = tensor("model.embed_tokens.weight");
    Rows x;
    for (const int32_t id : ids) {
      const auto first = table.begin() + id * model_.hidden;
      x.emplace_back(first, first + model_.hidden);
    }
    for (int64_t layer = 0; layer < model_.layers; ++layer) add_layer(layer, x);
    Rows out;
    for (const Row& row : x) {
      const Row normed = norm(row, tensor("model.norm.weight"));
      out.push_back(model_.tied ? multiply(table, normed) : linear("lm_head", normed));
    }
    return out;
  }

 private:
  const Row& tensor(const std::string& name) const { return checkpoint_.values(name); }

  static Row norm(const Row& x, const Row& weight) {
    double sum = 0;
    for (const double value : x) sum += value * value;
    const double factor = 1 / std::sqrt(sum / static_cast<double>(x.size()) + kEpsilon);
    Row out;
    for (size_t i = 0; i < x.size(); ++i) out.push_back(x[i] * factor * weight[i]);
    return out;
  }

  static Row multiply(const Row& weight, const Row& x) {
    Row y(weight.size() / x.size());
    for (size_t n = 0; n < y.size(); ++n) {
      for (size_t k = 0; k < x.size(); ++k) y[n] += weight[n * x.size() + k] * x[k];
    }
    return y;
  }

  LayerQuant quant_of(const std::string& module) const {
    const auto own = model_.quant_of ? model_.quant_of(module) : std::nullopt;
    if (own) return *own;
    return module == "lm_head" ? tiny_plain(model_.dtype) : model_.quant;
  }

  // The input of a layer after quantisation and back.
  Row quantised(const std::string& module, const Row& x) const {
    const std::optional<QuantSpec> input = quant_of(module).input;
    const auto& plain = details_.weight_only;
    if (!input || std::find(plain.begin(), plain.end(), module) != plain.end()) return x;
    const double largest_code = info(input->dtype).max_finite;
    const auto size = static_cast<int64_t>(x.size());
    const int64_t group = input->tile.cols == kWhole ? size : input->tile.cols;
    Row out(x.size());
    for (int64_t begin = 0; begin < size; begin += group) {
      const int64_t end = std::min(begin + group, size);
      double scale = 0;
      if (input->timing == ScaleTiming::Static) {
        scale = tensor(module + ".input_scale")[0];
      } else {
        for (int64_t i = begin; i < end; ++i)
          scale = std::max(scale, std::fabs(x[static_cast<size_t>(i)]) / largest_code);
      }
      for (int64_t i = begin; i < end && scale > 0; ++i) {
        const double value =
            std::clamp(x[static_cast<size_t>(i)] / scale, -largest_code, largest_code);
        const uint8_t code = f32_to_f8(input->dtype, static_cast<float>(value));
        out[static_cast<size_t>(i)] = double{f8_table(input->dtype)[code]} * scale;
      }
    }
    return out;
  }

  Row linear(const std::string& module, const Row& x, bool bias = false) const {
    Row y = multiply(tensor(module + ".weight"), quantised(module, x));
    if (!bias) return y;
    const Row& added = tensor(module + ".bias");
    for (size_t n = 0; n < y.size(); ++n) y[n] += added[n];
    return y;
  }

  // Rotates the heads of a row at `position`; head norms first where the model has them.
  void prepare_heads(Row& row, int64_t position, const std::string& head_norm) const {
    const auto dim = static_cast<size_t>(model_.head_dim);
    for (size_t begin = 0; begin < row.size(); begin += dim) {
      if (model_.qk_norm) {
        const Row head(row.begin() + static_cast<int64_t>(begin),
                       row.begin() + static_cast<int64_t>(begin + dim));
        const Row normed = norm(head, tensor(head_norm));
        std::copy(normed.begin(), normed.end(), row.begin() + static_cast<int64_t>(begin));
      }
      for (size_t i = 0; i < dim / 2; ++i) {
        const double frequency =
            details_.frequencies.empty()
                ? std::pow(10000.0, -2.0 * static_cast<double>(i) / static_cast<double>(dim))
                : details_.frequencies[i];
        const double angle = static_cast<double>(position) * frequency;
        const double cosine = details_.attention_factor * std::cos(angle);
        const double sine = details_.attention_factor * std::sin(angle);
        const double low = row[begin + i];
        const double high = row[begin + dim / 2 + i];
        row[begin + i] = low * cosine - high * sine;
        row[begin + dim / 2 + i] = high * cosine + low * sine;
      }
    }
  }

  // One head of one row over the keys that it may see.
  Row attend(const Row& q, const Rows& k, const Rows& v, int64_t head, int64_t window) const {
    const int64_t dim = model_.head_dim;
    const int64_t kv = head / (model_.heads / model_.kv_heads) * dim;
    const auto position = static_cast<int64_t>(k.size()) - 1;
    const int64_t first = window == 0 ? 0 : std::max<int64_t>(0, position - window + 1);
    Row weights;
    for (int64_t t = first; t <= position; ++t) {
      double dot = 0;
      for (int64_t d = 0; d < dim; ++d)
        dot += q[static_cast<size_t>(head * dim + d)] *
               k[static_cast<size_t>(t)][static_cast<size_t>(kv + d)];
      weights.push_back(dot / std::sqrt(static_cast<double>(dim)));
    }
    const double largest = *std::max_element(weights.begin(), weights.end());
    double sum = 0;
    for (double& weight : weights) sum += weight = std::exp(weight - largest);
    Row out(static_cast<size_t>(dim));
    for (size_t t = 0; t < weights.size(); ++t) {
      for (int64_t d = 0; d < dim; ++d)
        out[static_cast<size_t>(d)] +=
            weights[t] / sum * v[static_cast<size_t>(first) + t][static_cast<size_t>(kv + d)];
    }
    return out;
  }

  void add_layer(int64_t layer, Rows& x) const {
    const std::string prefix = fmt::format("model.layers.{}.", layer);
    const std::string attention = prefix + "self_attn.";
    const bool output_bias = model_.qkv_bias && model_.model_type == "llama";
    const int64_t window =
        details_.windows.empty() ? 0 : details_.windows[static_cast<size_t>(layer)];
    Rows k;
    Rows v;
    for (size_t t = 0; t < x.size(); ++t) {
      const Row input = norm(x[t], tensor(prefix + "input_layernorm.weight"));
      Row q = linear(attention + "q_proj", input, model_.qkv_bias);
      k.push_back(linear(attention + "k_proj", input, model_.qkv_bias));
      v.push_back(linear(attention + "v_proj", input, model_.qkv_bias));
      prepare_heads(q, static_cast<int64_t>(t), attention + "q_norm.weight");
      prepare_heads(k.back(), static_cast<int64_t>(t), attention + "k_norm.weight");
      Row joined;
      for (int64_t head = 0; head < model_.heads; ++head) {
        const Row out = attend(q, k, v, head, window);
        joined.insert(joined.end(), out.begin(), out.end());
      }
      add(linear(attention + "o_proj", joined, output_bias), x[t]);
      add(mlp(prefix, norm(x[t], tensor(prefix + "post_attention_layernorm.weight"))), x[t]);
    }
  }

  Row mlp(const std::string& prefix, const Row& input) const {
    Row gate = linear(prefix + "mlp.gate_proj", input);
    const Row up = linear(prefix + "mlp.up_proj", input);
    for (size_t i = 0; i < gate.size(); ++i) gate[i] = gate[i] / (1 + std::exp(-gate[i])) * up[i];
    return linear(prefix + "mlp.down_proj", gate);
  }

  static void add(const Row& delta, Row& x) {
    for (size_t i = 0; i < x.size(); ++i) x[i] += delta[i];
  }

  const TinyCheckpoint& checkpoint_;
  const TinyModel& model_;
  const ReferenceDetails& details_;
};

}  // namespace

std::vector<std::vector<double>> reference_logits(const TinyCheckpoint& checkpoint,
                                                  const TinyModel& model,
                                                  std::span<const int32_t> ids,
                                                  const ReferenceDetails& details) {
  return Reference(checkpoint, model, details).logits(ids);
}

}  // namespace octet
