#include <fmt/format.h>

#include <cmath>

#include "base/error.h"
#include "model/model.h"

namespace octet {
namespace {

const Kernel<Quantize>* quantizer(const ModelPlan& plan, const QuantSpec& spec) {
  for (const auto& [known, selection] : plan.ops.quantize) {
    if (known == spec) return selection.kernel();
  }
  throw_error(Code::Bug, fmt::format("the plan has no kernel for the input {}", to_string(spec)));
}

// A scale below zero or not finite is damage. Zero is what writers give a tile of zeros.
void check_scales(const LinearRecord& record) {
  const QuantView& view = record.view;
  if (!is_f8(view.spec.dtype)) return;
  for (int64_t r = 0; r < view.scales.shape[0]; ++r) {
    for (int64_t c = 0; c < view.scales.shape[1]; ++c) {
      const float scale = element(view.scales, r * view.scales.row_stride + c);
      if (std::isfinite(scale) && scale >= 0) continue;
      throw_error(Code::BadInput,
                  fmt::format("{}: weight scale [{}, {}] is {}, expected a number from 0 on",
                              record.module, r, c, scale),
                  "octet inspect lists every such scale; fetch the checkpoint again");
    }
  }
}

class Loader {
 public:
  Loader(const Checkpoint& checkpoint, Model& model, Device& device)
      : checkpoint_(checkpoint), model_(model), device_(device), stream_(device.make_stream()) {}

  Linear linear(size_t index, const LinearRecord& record) {
    const ModelPlan& plan = model_.plan;
    const Resolution& resolution = plan.layers[plan.layer_group[index]].resolution;
    Linear out;
    out.index = index;
    out.kernel = resolution.kernel();
    LinearProblem problem = resolution.problem();
    check_scales(record);
    const QuantView share = rank_share(record.view, plan.request.layers[index].parallel,
                                       plan.options.rank, plan.options.ranks);
    problem.weight.tile.first_row = share.spec.tile.first_row;
    problem.weight.tile.first_col = share.spec.tile.first_col;
    if (problem.weight.tile.rows == 1) problem.weight.tile.first_row = 0;
    if (problem.activation || problem.input != DType::F32) {
      out.input = problem.activation.value_or(QuantSpec{problem.input});
      out.quantize = quantizer(plan, out.input);
      if (problem.activation && problem.activation->timing == ScaleTiming::Static) {
        OCTET_CHECK(share.has_input_scale, "{} has no input scale", record.module);
        out.static_scale = element(share.input_scale, 0);
      }
    }
    out.weight = out.kernel->pack(share, problem, device_, *stream_);
    return out;
  }

  // A small float tensor as float32 in device memory.
  const float* floats(const std::string& name) {
    const ConstTensorView view = checkpoint_.view(*checkpoint_.find(name));
    std::vector<float> values(static_cast<size_t>(view.shape.elements()));
    for (size_t i = 0; i < values.size(); ++i) values[i] = element(view, static_cast<int64_t>(i));
    Buffer buffer = device_.allocate(values.size() * sizeof(float));
    stream_->upload(buffer.data(), values.data(), values.size() * sizeof(float));
    model_.storage.push_back(std::move(buffer));
    return model_.storage.back().as<float>();
  }

  // Requires that the head is loaded.
  void embedding() {
    const ConstTensorView view = checkpoint_.view(*checkpoint_.find(embedding_name(model_.config)));
    const ModelPlan& plan = model_.plan;
    const int64_t rows = plan.dims.vocab;
    const size_t bytes = static_cast<size_t>(rows * plan.dims.hidden * bytes_of(view.dtype));
    model_.embedding_first = rows * plan.options.rank;
    const std::byte* first = view.data + bytes * static_cast<size_t>(plan.options.rank);
    model_.embedding = first;
    if (device_.reads_host_memory()) return;
    if (model_.config.tied_embeddings && model_.head.weight.layout == kCheckpointLayout) {
      model_.embedding = model_.head.weight.codes;  // the same rows, copied once
      return;
    }
    Buffer buffer = device_.allocate(bytes);
    stream_->upload(buffer.data(), first, bytes);
    model_.embedding = buffer.data();
    model_.storage.push_back(std::move(buffer));
  }

 private:
  const Checkpoint& checkpoint_;
  Model& model_;
  Device& device_;
  std::unique_ptr<Stream> stream_;
};

Linear& slot(Model& model, const LinearRef& ref) {
  if (ref.role == Role::Head) return model.head;
  LayerWeights& layer = model.layers[static_cast<size_t>(ref.layer)];
  switch (ref.role) {
    case Role::Q:
      return layer.q;
    case Role::K:
      return layer.k;
    case Role::V:
      return layer.v;
    case Role::O:
      return layer.o;
    case Role::Gate:
      return layer.gate;
    case Role::Up:
      return layer.up;
    case Role::Down:
      return layer.down;
    case Role::Head:
      break;
  }
  return model.head;
}

}  // namespace

QuantView rank_share(const QuantView& whole, Parallel parallel, int rank, int ranks) {
  const auto part = [&](int64_t count) {
    return Range{count * rank / ranks, count * (rank + 1) / ranks};
  };
  const Range all_rows{0, whole.n()};
  const Range all_cols{0, whole.k()};
  switch (parallel) {
    case Parallel::None:
      return whole;
    case Parallel::Column:
      return slice(whole, part(whole.n()), all_cols);
    case Parallel::Row: {
      QuantView share = slice(whole, all_rows, part(whole.k()));
      if (rank != 0) share.has_bias = false;  // partial sums are added: the bias counts once
      return share;
    }
  }
  return whole;
}

std::shared_ptr<const Model> load(const Checkpoint& checkpoint, ModelConfig config,
                                  const Description& description,
                                  std::span<const LinearRecord> records, ModelPlan plan,
                                  Device& device) {
  require_runnable(plan);
  OCTET_CHECK(!checkpoint.headers_only(), "a checkpoint opened for its headers has no weights");
  auto model = std::make_shared<Model>();
  model->config = std::move(config);
  model->plan = std::move(plan);
  model->layers.resize(static_cast<size_t>(model->config.dims.layers));
  const ModelConfig& c = model->config;
  Loader loader(checkpoint, *model, device);
  for (size_t i = 0; i < records.size(); ++i)
    slot(*model, description.linears[i]) = loader.linear(i, records[i]);
  for (size_t i = 0; i < model->layers.size(); ++i) {
    const auto layer = static_cast<int64_t>(i);
    LayerWeights& weights = model->layers[i];
    const auto norm = [&](std::string_view module) {
      return module.empty() ? nullptr : loader.floats(layer_tensor_name(c, layer, module));
    };
    weights.before_attention = norm(c.norms.before_attention);
    weights.after_attention = norm(c.norms.after_attention);
    weights.before_mlp = norm(c.norms.before_mlp);
    weights.after_mlp = norm(c.norms.after_mlp);
    if (c.qk_norm != QkNorm::None) {
      weights.q_norm = norm("self_attn.q_norm");
      weights.k_norm = norm("self_attn.k_norm");
    }
  }
  model->final_norm = loader.floats(final_norm_name(c));
  loader.embedding();
  return model;
}

}  // namespace octet
