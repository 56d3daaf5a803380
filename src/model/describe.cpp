#include "model/describe.h"

#include <fmt/format.h>

#include "base/error.h"
#include "io/tensor_use.h"

namespace octet {
namespace {

constexpr std::string_view kHead = "lm_head";

LinearRef layer_ref(int64_t layer, std::string_view part, Role role, LayerShape shape) {
  const Parallel parallel =
      role == Role::O || role == Role::Down ? Parallel::Row : Parallel::Column;
  return {fmt::format("model.layers.{}.{}", layer, part),
          fmt::format("model.layers.*.{}", part),
          role,
          layer,
          shape,
          parallel};
}

void describe_layer(const ModelConfig& config, int64_t layer, Description& out) {
  const ModelDims& d = config.dims;
  const int64_t q = d.heads * d.head_dim;
  const int64_t kv = d.kv_heads * d.head_dim;
  out.linears.push_back(layer_ref(layer, "self_attn.q_proj", Role::Q, {q, d.hidden}));
  out.linears.push_back(layer_ref(layer, "self_attn.k_proj", Role::K, {kv, d.hidden}));
  out.linears.push_back(layer_ref(layer, "self_attn.v_proj", Role::V, {kv, d.hidden}));
  out.linears.push_back(layer_ref(layer, "self_attn.o_proj", Role::O, {d.hidden, q}));
  if (const auto* dense = std::get_if<DenseMlp>(&config.mlp)) {
    out.linears.push_back(
        layer_ref(layer, "mlp.gate_proj", Role::Gate, {dense->intermediate, d.hidden}));
    out.linears.push_back(
        layer_ref(layer, "mlp.up_proj", Role::Up, {dense->intermediate, d.hidden}));
    out.linears.push_back(
        layer_ref(layer, "mlp.down_proj", Role::Down, {d.hidden, dense->intermediate}));
  } else {
    out.experts.push_back(fmt::format("model.layers.{}.mlp.experts", layer));
  }
  out.tensors.push_back({layer_tensor_name(layer, "input_layernorm.weight"), {d.hidden}});
  out.tensors.push_back({layer_tensor_name(layer, "post_attention_layernorm.weight"), {d.hidden}});
  if (config.qk_norm) {
    out.tensors.push_back({layer_tensor_name(layer, "self_attn.q_norm.weight"), {d.head_dim}});
    out.tensors.push_back({layer_tensor_name(layer, "self_attn.k_norm.weight"), {d.head_dim}});
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
      require_tensor(checkpoint, {embedding_name(), {config.dims.vocab, config.dims.hidden}});
  LinearRecord record;
  record.module = kHead;
  record.view.codes = checkpoint.view(entry);
  record.view.codes.row_stride = config.dims.hidden;
  record.view.spec.dtype = entry.dtype;
  record.quant.weight = record.view.spec;
  return record;
}

LinearRecord record_of(const Checkpoint& checkpoint, const LinearRef& ref) {
  try {
    return linear_record(checkpoint, ref.module, ref.shape.n, ref.shape.k);
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

}  // namespace

std::string embedding_name() {
  return "model.embed_tokens.weight";
}
std::string final_norm_name() {
  return "model.norm.weight";
}
std::string layer_tensor_name(int64_t layer, std::string_view tensor) {
  return fmt::format("model.layers.{}.{}", layer, tensor);
}

Description describe(const ModelConfig& config) {
  Description out;
  out.tensors.push_back({embedding_name(), {config.dims.vocab, config.dims.hidden}});
  for (int64_t layer = 0; layer < config.dims.layers; ++layer) describe_layer(config, layer, out);
  out.tensors.push_back({final_norm_name(), {config.dims.hidden}});
  out.linears.push_back({std::string(kHead),
                         std::string(kHead),
                         Role::Head,
                         0,
                         {config.dims.vocab, config.dims.hidden},
                         Parallel::Column});
  return out;
}

std::vector<LinearRecord> linear_records(const Checkpoint& checkpoint, const ModelConfig& config,
                                         const Description& description,
                                         std::vector<std::string>& notes) {
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
      const std::string stored = std::string(kHead) + ".weight";
      if (checkpoint.find(stored) != nullptr) use.skip(stored, "tied to the embedding");
      continue;
    }
    records.push_back(record_of(checkpoint, ref));
    check_bias(checkpoint, config, ref, records.back());
    for (const std::string_view tensor : records.back().tensors) use.use(tensor);
  }
  if (description.experts.empty()) use.finish();
  for (std::string& line : use.skipped()) notes.push_back(std::move(line));
  return records;
}

PlanRequest plan_request(const Checkpoint& checkpoint, const ModelConfig& config,
                         const Description& description, std::span<const LinearRecord> records,
                         Carrier carrier) {
  PlanRequest request;
  request.model = checkpoint.dir().filename().empty()
                      ? checkpoint.dir().parent_path().filename().string()
                      : checkpoint.dir().filename().string();
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
    if (ref.name != embedding_name()) {
      request.other_bytes += entry->bytes;
    } else if (!config.tied_embeddings) {
      request.embedding_bytes = entry->bytes;
    }
  }
  request.embedding = checkpoint.find(embedding_name())->dtype;
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
