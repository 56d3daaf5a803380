#include "model/describe.h"

#include <fmt/format.h>

#include <array>
#include <cstring>

#include "base/error.h"
#include "io/hub_cache.h"
#include "io/tensor_use.h"

namespace octet {
namespace {

// Where writers put a text model's embedding, layers and last norm, and its head beside them:
// models of text alone, transformers' wrappers since 4.52 and before, a decoder without a head.
struct Place {
  std::string_view prefix, head;
};
constexpr std::array kPlaces{
    Place{"model.", "lm_head"},
    Place{"model.language_model.", "lm_head"},
    Place{"language_model.model.", "language_model.lm_head"},
    Place{"language_model.", "lm_head"},
    Place{"", "lm_head"},
};

// One layer's linear layers, added in the order of computation.
class LayerDescriber {
 public:
  LayerDescriber(const ModelConfig& config, int64_t layer, Description& out)
      : config_(config), layer_(layer), out_(out) {}

  void add(std::string_view module, Role role, LayerShape shape) {
    add_part(module, "", role, shape, {});
  }

  // Layers stored one below the other in one matrix.
  struct Part {
    std::string_view name;
    Role role;
    int64_t rows;
  };
  void add_fused(std::string_view module, int64_t k, std::initializer_list<Part> parts) {
    StoredPart part;
    part.count = static_cast<int>(parts.size());
    for (const Part& p : parts) part.stored_rows += p.rows;
    for (const Part& p : parts) {
      add_part(module, p.name, p.role, {p.rows, k}, part);
      ++part.index;
      part.first_row += p.rows;
    }
  }

 private:
  void add_part(std::string_view module, std::string_view name, Role role, LayerShape shape,
                StoredPart part) {
    const bool row_parallel = role == Role::O || role == Role::Down;
    LinearRef ref;
    ref.stored = fmt::format("{}layers.{}.{}", config_.stored.prefix, layer_, module);
    const std::string suffix = name.empty() ? "" : fmt::format(".{}", name);
    ref.module = ref.stored + suffix;
    ref.pattern = fmt::format("{}layers.*.{}{}", config_.stored.prefix, module, suffix);
    ref.part = part;
    ref.role = role;
    ref.layer = layer_;
    ref.shape = shape;
    ref.parallel = row_parallel ? Parallel::Row : Parallel::Column;
    out_.linears.push_back(std::move(ref));
  }

  const ModelConfig& config_;
  int64_t layer_;
  Description& out_;
};

void describe_mlp(const ModelConfig& config, int64_t layer, LayerDescriber& linear,
                  Description& out) {
  const auto* dense = std::get_if<DenseMlp>(&config.mlp);
  if (dense == nullptr) {
    out.experts.push_back(fmt::format("{}layers.{}.mlp.experts", config.stored.prefix, layer));
    return;
  }
  const int64_t n = dense->intermediate;
  const int64_t hidden = config.dims.hidden;
  if (config.stored.fused_gate_up) {
    linear.add_fused("mlp.gate_up_proj", hidden, {{"gate", Role::Gate, n}, {"up", Role::Up, n}});
  } else {
    linear.add("mlp.gate_proj", Role::Gate, {n, hidden});
    linear.add("mlp.up_proj", Role::Up, {n, hidden});
  }
  linear.add("mlp.down_proj", Role::Down, {hidden, n});
}

void describe_layer(const ModelConfig& config, int64_t layer, Description& out) {
  const ModelDims& d = config.dims;
  const int64_t q = d.heads * d.head_dim;
  const int64_t kv = d.kv_heads * d.head_dim;
  LayerDescriber linear(config, layer, out);
  if (config.stored.fused_qkv) {
    linear.add_fused("self_attn.qkv_proj", d.hidden,
                     {{"q", Role::Q, q}, {"k", Role::K, kv}, {"v", Role::V, kv}});
  } else {
    linear.add("self_attn.q_proj", Role::Q, {q, d.hidden});
    linear.add("self_attn.k_proj", Role::K, {kv, d.hidden});
    linear.add("self_attn.v_proj", Role::V, {kv, d.hidden});
  }
  linear.add("self_attn.o_proj", Role::O, {d.hidden, q});
  describe_mlp(config, layer, linear, out);

  const auto norm = [&](std::string_view module, int64_t width) {
    if (!module.empty()) out.tensors.push_back({layer_tensor_name(config, layer, module), {width}});
  };
  norm(config.norms.before_attention, d.hidden);
  norm(config.norms.after_attention, d.hidden);
  norm(config.norms.before_mlp, d.hidden);
  norm(config.norms.after_mlp, d.hidden);
  if (config.qk_norm != QkNorm::None) {
    const bool per_head = config.qk_norm == QkNorm::PerHead;
    norm("self_attn.q_norm", per_head ? d.head_dim : q);
    norm("self_attn.k_norm", per_head ? d.head_dim : kv);
  }
}

bool bias_expected(const ModelConfig& config, Role role) {
  switch (role) {
    case Role::Q:
    case Role::K:
    case Role::V:
      return config.qkv_bias;
    case Role::O:
      return config.output_bias;
    case Role::Gate:
    case Role::Up:
    case Role::Down: {
      const auto* dense = std::get_if<DenseMlp>(&config.mlp);
      return dense != nullptr && dense->bias;
    }
    case Role::Head:
      return false;
  }
  return false;
}

const TensorEntry& require_tensor(const Checkpoint& checkpoint, const TensorRef& ref) {
  const TensorEntry* entry = checkpoint.find(ref.name);
  if (entry == nullptr) {
    throw_error(Code::BadInput,
                fmt::format("{}: no tensor \"{}\"", checkpoint.dir().string(), ref.name),
                "the checkpoint does not hold the model that config.json describes");
  }
  const bool is_float =
      entry->dtype == DType::F32 || entry->dtype == DType::F16 || entry->dtype == DType::BF16;
  if (!(entry->shape == ref.shape) || !is_float) {
    throw_error(Code::BadInput,
                fmt::format("{}: tensor \"{}\": expected {} of f32, f16 or bf16, got {} of {}",
                            checkpoint.dir().string(), ref.name, to_string(ref.shape),
                            to_string(entry->shape), name(entry->dtype)),
                "config.json and the files must be of one model");
  }
  return *entry;
}

LinearRecord tied_head(const Checkpoint& checkpoint, const ModelConfig& config) {
  const TensorEntry& entry =
      require_tensor(checkpoint, {embedding_name(config), {config.dims.vocab, config.dims.hidden}});
  LinearRecord record;
  record.module = config.stored.head;
  record.view.codes = checkpoint.view(entry);
  record.view.codes.row_stride = config.dims.hidden;
  record.view.spec.dtype = entry.dtype;
  record.quant.weight = record.view.spec;
  return record;
}

LinearRecord record_of(const Checkpoint& checkpoint, const LinearRef& ref) {
  try {
    LinearRecord record = linear_record(checkpoint, ref.stored, ref.shape.n, ref.shape.k, ref.part);
    record.module = ref.module;
    return record;
  } catch (const Error& error) {
    throw error.or_hint(
        "config.json and the .safetensors files must be of one checkpoint, whole and as it was "
        "written");
  }
}

void check_bias(const Checkpoint& checkpoint, const ModelConfig& config, const LinearRef& ref,
                const LinearRecord& record) {
  if (record.view.has_bias == bias_expected(config, ref.role)) return;
  throw_error(Code::BadInput,
              fmt::format("{}: {}: config.json of {} says {} bias, the files hold {}",
                          checkpoint.dir().string(), ref.module, config.architecture,
                          record.view.has_bias ? "no" : "a", record.view.has_bias ? "one" : "none"),
              "check attention_bias and mlp_bias of config.json");
}

// True when two tensors of one shape and dtype hold the same bytes: all of small ones, 64 pieces of
// large ones, so that the answer costs no reading of weights.
bool same_bytes(const Checkpoint& checkpoint, const TensorEntry& a, const TensorEntry& b) {
  if (a.dtype != b.dtype || !(a.shape == b.shape)) return false;
  const std::byte* x = checkpoint.view(a).data;
  const std::byte* y = checkpoint.view(b).data;
  if (x == nullptr || y == nullptr) return true;  // headers only: what the config says
  constexpr uint64_t kPieces = 64;
  constexpr uint64_t kPiece = 4096;
  if (a.bytes <= kPieces * kPiece) return std::memcmp(x, y, a.bytes) == 0;
  const uint64_t step = (a.bytes - kPiece) / (kPieces - 1);
  for (uint64_t i = 0; i < kPieces; ++i) {
    if (std::memcmp(x + i * step, y + i * step, kPiece) != 0) return false;
  }
  return true;
}

void untie_stored_head(const Checkpoint& checkpoint, ModelConfig& config) {
  const TensorEntry* head = checkpoint.find(config.stored.head + ".weight");
  const TensorEntry* embedding = checkpoint.find(embedding_name(config));
  if (!config.tied_embeddings || head == nullptr || embedding == nullptr) return;
  if (same_bytes(checkpoint, *head, *embedding)) return;
  config.tied_embeddings = false;
  config.notes.push_back(
      fmt::format("config.json: /tie_word_embeddings is true, but \"{}\" differs from the "
                  "embedding: the stored "
                  "head is used",
                  head->name));
}

// Tensors of a wrapper outside its text model.
void skip_other_parts(const ModelConfig& config, const Checkpoint& checkpoint, TensorUse& use) {
  const std::string reason = fmt::format("parts of {} beside the text model", config.wrapper);
  for (const TensorEntry& entry : checkpoint.tensors()) {
    if (!entry.name.starts_with(config.stored.prefix) &&
        !entry.name.starts_with(config.stored.head + "."))
      use.skip(entry.name, reason);
  }
}

void require_head(const Checkpoint& checkpoint, const ModelConfig& config) {
  const std::string head = config.stored.head + ".weight";
  if (config.tied_embeddings || checkpoint.find(head) != nullptr) return;
  throw_error(Code::BadInput,
              fmt::format("{}: no tensor \"{}\", and config.json: /tie_word_embeddings is not true",
                          checkpoint.dir().string(), head),
              "fetch the missing file; if the model shares its embedding with the head, "
              "tie_word_embeddings must be true");
}

}  // namespace

std::string embedding_name(const ModelConfig& config) {
  return config.stored.prefix + "embed_tokens.weight";
}
std::string final_norm_name(const ModelConfig& config) {
  return config.stored.prefix + "norm.weight";
}
std::string layer_tensor_name(const ModelConfig& config, int64_t layer, std::string_view module) {
  return fmt::format("{}layers.{}.{}.weight", config.stored.prefix, layer, module);
}

ModelConfig model_config(const Checkpoint& checkpoint) {
  ModelConfig config;
  try {
    config = read_config(checkpoint.config());
  } catch (const Error& error) {
    throw error.with(checkpoint.dir().string());
  }
  for (const Place& place : kPlaces) {
    StoredNames& stored = config.stored;
    if (checkpoint.find(fmt::format("{}embed_tokens.weight", place.prefix)) == nullptr) continue;
    stored.prefix = place.prefix;
    stored.head = place.head;
    break;
  }
  untie_stored_head(checkpoint, config);
  return config;
}

Description describe(const ModelConfig& config) {
  Description out;
  const int64_t vocab = config.dims.vocab;
  const int64_t hidden = config.dims.hidden;
  out.tensors.push_back({embedding_name(config), {vocab, hidden}});
  for (int64_t layer = 0; layer < config.dims.layers; ++layer) describe_layer(config, layer, out);
  out.tensors.push_back({final_norm_name(config), {hidden}});
  LinearRef head;
  head.module = head.pattern = head.stored = config.stored.head;
  head.role = Role::Head;
  head.shape = {vocab, hidden};
  head.parallel = Parallel::Column;
  out.linears.push_back(std::move(head));
  return out;
}

std::vector<LinearRecord> linear_records(const Checkpoint& checkpoint, const ModelConfig& config,
                                         const Description& description,
                                         std::vector<std::string>& notes) {
  require_head(checkpoint, config);
  TensorUse use(checkpoint);
  for (const TensorRef& ref : description.tensors) {
    require_tensor(checkpoint, ref);
    use.use(ref.name);
  }
  std::vector<LinearRecord> records;
  records.reserve(description.linears.size());
  for (const LinearRef& ref : description.linears) {
    if (ref.role == Role::Head && config.tied_embeddings) {
      records.push_back(tied_head(checkpoint, config));
      const std::string stored = config.stored.head + ".weight";
      if (checkpoint.find(stored) != nullptr) use.skip(stored, "tied to the embedding");
      continue;
    }
    records.push_back(record_of(checkpoint, ref));
    check_bias(checkpoint, config, ref, records.back());
    for (const std::string_view tensor : records.back().tensors) use.use(tensor);
  }
  if (!config.wrapper.empty()) skip_other_parts(config, checkpoint, use);
  if (description.experts.empty()) use.finish();
  for (std::string& line : use.skipped()) notes.push_back(std::move(line));
  return records;
}

PlanRequest plan_request(const Checkpoint& checkpoint, const ModelConfig& config,
                         const Description& description, std::span<const LinearRecord> records,
                         Carrier carrier) {
  PlanRequest request;
  request.model = model_name(checkpoint.dir());
  request.architecture = config.architecture;
  request.dims = config.dims;
  request.kv.dtype = carrier == Carrier::F32 ? DType::F32 : DType::BF16;
  request.kv.kv_heads = config.dims.kv_heads;
  request.kv.head_dim = config.dims.head_dim;
  request.kv.layers = config.dims.layers;
  bool unused_input_scale = false;
  for (size_t i = 0; i < records.size(); ++i) {
    const LinearRef& ref = description.linears[i];
    request.layers.push_back({ref.module, ref.pattern, ref.shape, ref.parallel, records[i].quant,
                              records[i].view.has_bias});
    unused_input_scale =
        unused_input_scale ||
        (records[i].view.has_input_scale &&
         (!records[i].quant.input || records[i].quant.input->timing == ScaleTiming::Dynamic));
  }
  for (const TensorRef& ref : description.tensors) {
    const TensorEntry* entry = checkpoint.find(ref.name);
    if (ref.name != embedding_name(config)) {
      request.other_bytes += entry->bytes;
    } else if (!config.tied_embeddings) {
      request.embedding_bytes = entry->bytes;
    }
  }
  request.embedding = checkpoint.find(embedding_name(config))->dtype;
  request.interleaved_rope = config.interleaved_rope;
  if (config.qk_norm == QkNorm::AllHeads)
    request.one_rank = "its norms of q and k are over all heads together";
  for (const std::string& expert : description.experts) {
    request.unsupported.push_back(
        fmt::format("cannot plan {}: expert layers (mixture of experts) are not computed", expert));
  }
  for (const int32_t id : config.eos_ids) {
    if (id < config.dims.vocab) continue;
    request.notes.push_back(
        fmt::format("config.json: /eos_token_id: {} is outside the vocabulary of {} and ends no "
                    "answer",
                    id, config.dims.vocab));
  }
  if (unused_input_scale) {
    request.notes.push_back(
        "stored static input scales are not used: the config quantises no activations with them");
  }
  if (checkpoint.quant().kv_cache()) {
    request.notes.push_back(
        fmt::format("kv_cache_scheme has no effect: the cache holds {}, not 8-bit floats",
                    name(request.kv.dtype)));
  }
  for (const std::string& note : config.notes) request.notes.push_back(note);
  for (const std::string& note : checkpoint.notes()) request.notes.push_back(note);
  for (const std::string& note : checkpoint.quant().notes()) request.notes.push_back(note);
  return request;
}

}  // namespace octet
