#include "model/decoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "model/step_buffers.h"

namespace octet {
namespace {

// A linear layer to compute and where its output goes.
struct LinearCall {
  const Linear* layer;
  float* y;
};

}  // namespace

struct Decoder::Impl {
  Impl(std::shared_ptr<const Model> m, KvCache& c, Communicator& comm, Device& d)
      : model(std::move(m)),
        cache(c),
        communicator(comm),
        device(d),
        stream(d.make_stream()),
        work(model->plan.workspace, d),
        step(d),
        ops(model->plan.ops),
        dims(model->plan.dims),
        round(model->plan.options.policy.carrier == Carrier::BF16) {}

  std::shared_ptr<const Model> model;
  KvCache& cache;
  Communicator& communicator;
  Device& device;
  std::unique_ptr<Stream> stream;
  Workspace work;
  StepBuffers step;
  const OpPlan& ops;
  const ModelDims& dims;
  const bool round;  // --dtype bfloat16
  int64_t rows = 0;
  int64_t max_context = 0;
  const Batch* batch = nullptr;
  Buffer input_amax;               // [linears] f32; empty unless watched
  std::vector<float> kept_logits;  // [logit_rows, vocab] of this step; empty unless asked for

  void round_bf16(float* x, int64_t count_rows, int64_t width) {
    if (round) launch(*ops.round.kernel(), RoundBf16::Args{x, width, count_rows, width}, *stream);
  }

  // Runs layers that share the input x [count_rows, K], dense; an input that two of them take alike
  // is made once.
  void linears(const float* x, int64_t count_rows, std::initializer_list<LinearCall> calls) {
    const Linear* made = nullptr;
    for (const LinearCall& call : calls) {
      const Linear& layer = *call.layer;
      const int64_t k = layer.weight.problem.k;
      const int64_t n = layer.weight.problem.n;
      if (input_amax.data() != nullptr) {
        launch(*ops.absmax.kernel(),
               AbsMax::Args{x, k, count_rows, k, input_amax.as<float>() + layer.index}, *stream);
      }
      LinearInput input{x, k, nullptr};
      if (layer.quantize != nullptr) {
        const bool same = made != nullptr && made->input == layer.input &&
                          made->static_scale == layer.static_scale;
        if (!same) quantize_input(layer, x, count_rows, k);
        made = &layer;
        const bool is_static = layer.static_scale.has_value();
        input = {work.codes, k, is_static ? layer.weight.input_scale : work.code_scales};
        if (!is_f8(layer.input.dtype)) input.scales = nullptr;
      }
      launch(*layer.kernel,
             LinearArgs{&layer.weight, count_rows, input, call.y, n, work.linear_scratch}, *stream);
      round_bf16(call.y, count_rows, n);
    }
  }

  void quantize_input(const Linear& layer, const float* x, int64_t count_rows, int64_t k) {
    launch(*layer.quantize,
           Quantize::Args{x, k, count_rows, k, layer.input, layer.weight.input_scale, work.codes,
                          work.code_scales},
           *stream);
  }

  // work.residual += delta, watching for values that are not finite. Returns norm(residual) *
  // weight, or the residual itself where the architecture has no norm.
  const float* norm(const float* delta, const float* weight, int32_t stage) {
    RmsNorm::Args args;
    args.x = work.residual;
    args.x_stride = args.delta_stride = args.out_stride = args.width = dims.hidden;
    args.delta = delta;
    args.weight = weight;
    args.out = work.normed;
    args.rows = rows;
    args.epsilon = static_cast<float>(model->config.rms_epsilon);
    args.round_bf16 = round;
    args.not_finite = step.not_finite();
    args.tag = stage;
    launch(*ops.norm.kernel(), args, *stream);
    return weight == nullptr ? work.residual : work.normed;
  }

  // Normalises rows of `width` elements in place; without a weight they stay.
  void norm_in_place(float* x, int64_t count_rows, int64_t width, const float* weight) {
    if (weight == nullptr) return;
    RmsNorm::Args args;
    args.x = args.out = x;
    args.x_stride = args.out_stride = args.width = width;
    args.weight = weight;
    args.rows = count_rows;
    args.epsilon = static_cast<float>(model->config.rms_epsilon);
    args.round_bf16 = round;
    launch(*ops.norm.kernel(), args, *stream);
  }

  void norm_heads(float* x, int64_t heads, const float* weight) {
    if (model->config.qk_norm == QkNorm::AllHeads) {
      norm_in_place(x, rows, heads * dims.head_dim, weight);
    } else {
      norm_in_place(x, rows * heads, dims.head_dim, weight);
    }
  }

  void embed() {
    Gather::Args args;
    args.table = model->embedding;
    args.table_dtype = model->plan.request.embedding;
    args.table_stride = args.width = dims.hidden;
    args.first_entry = model->embedding_first;
    args.entries = dims.vocab;
    args.ids = step.tokens();
    args.out = work.residual;
    args.rows = rows;
    launch(*ops.embedding.kernel(), args, *stream);
    communicator.all_reduce_sum(work.residual, rows * dims.hidden, *stream);
  }

  void rope(int64_t layer) {
    Rope::Args args;
    args.q = work.q;
    args.q_stride = dims.heads * dims.head_dim;
    args.k = work.k;
    args.v = work.v;
    args.k_stride = args.v_stride = dims.kv_heads * dims.head_dim;
    args.positions = step.angle_rows();
    args.cos_sin = step.angles();
    args.slots = step.slots();
    args.k_cache = cache.k(layer);
    args.v_cache = cache.v(layer);
    args.kv_dtype = cache.spec().dtype;
    args.block_size = cache.spec().block_size;
    args.rows = rows;
    args.heads = dims.heads;
    args.kv_heads = dims.kv_heads;
    args.head_dim = dims.head_dim;
    args.rotary_dim = dims.rotary_dim;
    args.k_scale = cache.spec().k_scale.value_or(1);
    args.v_scale = cache.spec().v_scale.value_or(1);
    args.interleaved = model->config.interleaved_rope;
    args.round_bf16 = round;
    launch(*ops.rope.kernel(), args, *stream);
  }

  void attend(int64_t layer) {
    Attention::Args args;
    args.q = work.q;
    args.q_stride = args.out_stride = dims.heads * dims.head_dim;
    args.k_cache = cache.k(layer);
    args.v_cache = cache.v(layer);
    args.kv_dtype = cache.spec().dtype;
    args.block_size = cache.spec().block_size;
    args.spans = step.spans();
    args.span_count = static_cast<int64_t>(batch->spans.size());
    args.block_tables = step.block_tables();
    args.table_stride = batch->table_stride;
    args.rows = rows;
    args.max_context = max_context;
    args.heads = dims.heads;
    args.kv_heads = dims.kv_heads;
    args.head_dim = dims.head_dim;
    args.window = model->config.windows[static_cast<size_t>(layer)];
    args.scale = 1.0F / std::sqrt(static_cast<float>(dims.head_dim));
    args.k_scale = cache.spec().k_scale.value_or(1);
    args.v_scale = cache.spec().v_scale.value_or(1);
    args.out = work.attention;
    args.scratch = work.attention_scratch;
    launch(*ops.attention.kernel(), args, *stream);
    round_bf16(work.attention, rows, dims.heads * dims.head_dim);
  }

  void layer(int64_t i, const float* delta) {
    const LayerWeights& w = model->layers[static_cast<size_t>(i)];
    const auto stage = static_cast<int32_t>(2 * i);
    const float* attention_input = norm(delta, w.before_attention, stage);
    linears(attention_input, rows, {{&w.q, work.q}, {&w.k, work.k}, {&w.v, work.v}});
    norm_heads(work.q, dims.heads, w.q_norm);
    norm_heads(work.k, dims.kv_heads, w.k_norm);
    rope(i);
    attend(i);
    linears(work.attention, rows, {{&w.o, work.delta}});
    communicator.all_reduce_sum(work.delta, rows * dims.hidden, *stream);
    norm_in_place(work.delta, rows, dims.hidden, w.after_attention);
    const float* mlp_input = norm(work.delta, w.before_mlp, stage + 1);
    linears(mlp_input, rows, {{&w.gate, work.gate}, {&w.up, work.up}});
    launch(*ops.silu_mul.kernel(),
           SiluMul::Args{work.gate, work.up, dims.intermediate, work.gate, dims.intermediate, rows,
                         dims.intermediate, round},
           *stream);
    linears(work.gate, rows, {{&w.down, work.delta}});
    communicator.all_reduce_sum(work.delta, rows * dims.hidden, *stream);
    norm_in_place(work.delta, rows, dims.hidden, w.after_mlp);
  }

  // Logits of logit rows [begin, begin + count) and everything asked of them.
  void head(int64_t begin, int64_t count) {
    Gather::Args gather;
    gather.table = work.normed;
    gather.table_dtype = DType::F32;
    gather.table_stride = gather.width = dims.hidden;
    gather.entries = rows;
    gather.ids = step.logit_rows() + begin;
    gather.out = work.head_input;
    gather.rows = count;
    launch(*ops.gather_rows.kernel(), gather, *stream);
    linears(work.head_input, count, {{&model->head, work.logits}});
    const int64_t vocab = model->plan.request.dims.vocab;
    communicator.all_gather(work.logits, work.logits, count, dims.vocab, *stream);
    if (batch->keep_logits) {
      stream->download(kept_logits.data() + begin * vocab, work.logits,
                       static_cast<size_t>(count * vocab) * sizeof(float));
    }

    const bool sampled = !batch->sample.empty();
    launch(
        *ops.argmax.kernel(),
        ArgMax::Args{work.logits, count, vocab, step.ids() + begin,
                     step.logits_not_finite() + begin, static_cast<int32_t>(2 * dims.layers + 1)},
        *stream);
    if (sampled && needs_sampling(begin, count)) {
      launch(*ops.sample.kernel(),
             Sample::Args{work.logits, count, vocab, step.sample() + begin,
                          batch->history.empty() ? nullptr : step.history(), step.ids() + begin,
                          work.sample_scratch},
             *stream);
    }
    logprob(count, step.ids() + begin, step.logprobs() + begin);
    if (!batch->targets.empty())
      logprob(count, step.targets() + begin, step.target_logprobs() + begin);
    const int64_t k = batch->top_logprobs;
    if (k > 0) {
      launch(*ops.topk.kernel(),
             TopK::Args{work.logits, count, vocab, k, step.top_ids() + begin * k,
                        step.top_logprobs() + begin * k},
             *stream);
    }
  }

  void logprob(int64_t count, const int32_t* ids, float* out) {
    launch(*ops.logprob.kernel(),
           LogProb::Args{work.logits, count, model->plan.request.dims.vocab, ids, out}, *stream);
  }

  // Greedy rows without a penalty are what arg-max has already written.
  bool needs_sampling(int64_t begin, int64_t count) const {
    return std::any_of(
        batch->sample.begin() + begin, batch->sample.begin() + begin + count,
        [](const SampleParams& p) { return p.temperature != 0 || p.repetition_penalty != 1; });
  }

  StepResult forward(const Batch& b) {
    batch = &b;
    rows = b.rows();
    OCTET_CHECK(rows >= 1 && rows <= model->plan.workspace.rows, "{} rows, at most {}", rows,
                model->plan.workspace.rows);
    max_context = 0;
    for (const SeqSpan& span : b.spans)
      max_context = std::max<int64_t>(max_context, span.context + span.rows);
    step.upload(b, model->config.rope, dims.rotary_dim, *stream);
    embed();
    const float* delta = nullptr;
    for (int64_t i = 0; i < dims.layers; ++i) {
      layer(i, delta);
      delta = work.delta;
    }
    const auto logit_rows = static_cast<int64_t>(b.logit_rows.size());
    if (logit_rows > 0) {
      norm(delta, model->final_norm, static_cast<int32_t>(2 * dims.layers));
      if (b.keep_logits)
        kept_logits.resize(static_cast<size_t>(logit_rows * model->plan.request.dims.vocab));
      const int64_t chunk = model->plan.workspace.logit_rows;
      for (int64_t begin = 0; begin < logit_rows; begin += chunk)
        head(begin, std::min(chunk, logit_rows - begin));
    }
    StepResult result = step.download(b, *stream);
    result.logits = std::exchange(kept_logits, {});
    return result;
  }
};

Decoder::Decoder(std::shared_ptr<const Model> model, KvCache& cache, Communicator& communicator,
                 Device& device)
    : impl_(std::make_unique<Impl>(std::move(model), cache, communicator, device)) {}
Decoder::~Decoder() = default;

int64_t Decoder::max_rows() const {
  return impl_->model->plan.workspace.rows;
}

void Decoder::watch_inputs() {
  const size_t bytes = impl_->model->plan.request.layers.size() * sizeof(float);
  impl_->input_amax = impl_->device.allocate(bytes);
  impl_->stream->zero(impl_->input_amax.data(), bytes);
}

std::vector<float> Decoder::input_amax() {
  OCTET_CHECK(impl_->input_amax.data() != nullptr, "watch_inputs() comes first");
  std::vector<float> amax(impl_->model->plan.request.layers.size());
  impl_->stream->download(amax.data(), impl_->input_amax.data(), amax.size() * sizeof(float));
  return amax;
}

StepResult Decoder::forward(const Batch& batch) {
  return impl_->forward(batch);
}

std::string stage_name(int32_t stage, int64_t layers) {
  if (stage == 0) return "the embedding (model.embed_tokens)";
  if (stage == 2 * layers + 1) return "the head (lm_head)";
  if (stage % 2 == 1) return fmt::format("model.layers.{}.self_attn", stage / 2);
  return fmt::format("model.layers.{}.mlp", stage / 2 - 1);
}

}  // namespace octet
