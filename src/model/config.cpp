#include "model/config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "base/printable.h"
#include "io/json_field.h"
#include "model/config_fields.h"

namespace octet {
namespace {

using Json = nlohmann::json;
using config_json::bad_field;
using config_json::find;

std::vector<const ArchSpec*>& registered() {
  static std::vector<const ArchSpec*> list;
  return list;
}

const ArchSpec* spec_of_text_type(const Json& text) {
  const Json* type = find(text, "model_type");
  if (type == nullptr || !type->is_string()) return nullptr;
  for (const ArchSpec* spec : architectures()) {
    if (*type == spec->model_type ||
        std::any_of(spec->text_types.begin(), spec->text_types.end(),
                    [&](std::string_view other) { return *type == other; }))
      return spec;
  }
  return nullptr;
}

void check_model_type(const Json& config, const std::string& architecture, const ArchSpec& spec) {
  const Json* type = find(config, "model_type");
  if (type == nullptr) return;
  if (!type->is_string()) bad_field("model_type", "a name", type);
  if (*type == spec.model_type) return;
  throw_error(Code::BadInput,
              fmt::format("config.json: /model_type: {} contradicts /architectures: \"{}\" is of "
                          "model_type \"{}\"",
                          type->dump(), architecture, spec.model_type),
              "octet goes by architectures, transformers by model_type: make them agree");
}

// Fields by which other families change what a decoder computes, and the value that changes
// nothing. The families of this program have none of them, in transformers as here.
struct ForeignField {
  std::string_view key;
  double neutral;
};
constexpr ForeignField kForeign[] = {
    {"attn_logit_softcapping", 0}, {"final_logit_softcapping", 0}, {"logit_scale", 1},
    {"logits_scaling", 1},         {"residual_multiplier", 1},     {"embedding_multiplier", 1},
    {"attention_multiplier", 0},   {"query_pre_attn_scalar", 0},   {"clip_qkv", 0},
    {"no_rope_layers", 0},         {"attention_chunk_size", 0},
};

bool is_neutral(const Json& value, double neutral) {
  if (value.is_number()) return value.get<double>() == neutral;
  return value.empty() || value == false;
}

std::vector<std::string> foreign_fields(const Json& config, std::string_view architecture) {
  std::vector<std::string> notes;
  for (const ForeignField& field : kForeign) {
    const Json* value = find(config, field.key);
    if (value == nullptr || is_neutral(*value, field.neutral)) continue;
    notes.push_back(fmt::format("config.json: /{} has no effect in {}", field.key, architecture));
  }
  return notes;
}

}  // namespace

detail::RegisterArch::RegisterArch(const ArchSpec& spec) {
  registered().push_back(&spec);
}

std::span<const ArchSpec* const> architectures() {
  return registered();
}

std::vector<std::string_view> architecture_names() {
  std::vector<std::string_view> names;
  for (const ArchSpec* spec : architectures())
    names.insert(names.end(), spec->hf_names.begin(), spec->hf_names.end());
  std::sort(names.begin(), names.end());
  return names;
}

namespace {

const std::string& architecture_of(const Json& config) {
  const Json* names = find(config, "architectures");
  if (names == nullptr || !names->is_array() || names->empty() || !names->front().is_string()) {
    bad_field("architectures", "a list with one name", names);
  }
  return names->front().get_ref<const std::string&>();
}

ModelConfig read_as(const ArchSpec& spec, std::string_view architecture, const Json& config) {
  ModelConfig result = spec.read_config(config);
  result.architecture = architecture;
  const std::vector<std::string> foreign = foreign_fields(config, architecture);
  result.notes.insert(result.notes.end(), foreign.begin(), foreign.end());
  return result;
}

[[noreturn]] void refuse_text_type(const Json& text, const std::string& wrapper) {
  const Json* type = find(text, "model_type");
  if (type != nullptr && !type->is_string())
    bad_field("text_config/model_type", "the name of a type", type);
  throw_error(
      Code::CannotRun,
      type == nullptr
          ? fmt::format("config.json: /text_config has no model_type: which text model is in "
                        "\"{}\" is not known",
                        printable(wrapper))
          : fmt::format("config.json: /text_config/model_type: {} of \"{}\" is not a text model "
                        "octet knows",
                        shown_value(*type), printable(wrapper)),
      fmt::format("known: the text models of {}", fmt::join(architecture_names(), ", ")));
}

// A wrapper's text model. What its own part leaves out, the whole says.
ModelConfig read_wrapped(const Json& config, const Json& text) {
  const std::string& name = architecture_of(config);
  const ArchSpec* spec = spec_of_text_type(text);
  if (spec == nullptr) refuse_text_type(text, name);
  Json merged = text;
  for (const char* key : {"tie_word_embeddings", "eos_token_id"}) {
    const Json* own = find(config, key);
    if (own != nullptr && find(merged, key) == nullptr) merged[key] = *own;
  }
  ModelConfig result = read_as(*spec, spec->hf_names.front(), merged);
  result.wrapper = name;
  result.notes.push_back(
      fmt::format("config.json: /text_config: the text model of {} is run, text only", name));
  return result;
}

}  // namespace

ModelConfig read_config(const Json& config) {
  const Json* text = find(config, "text_config");
  if (text != nullptr && !text->is_object()) bad_field("text_config", "an object", text);
  if (text != nullptr) return read_wrapped(config, *text);
  const std::string& name = architecture_of(config);
  for (const ArchSpec* spec : architectures()) {
    if (std::find(spec->hf_names.begin(), spec->hf_names.end(), name) == spec->hf_names.end())
      continue;
    check_model_type(config, name, *spec);
    return read_as(*spec, name, config);
  }
  throw_error(Code::CannotRun,
              fmt::format("config.json: /architectures: \"{}\" is not an architecture octet knows",
                          printable_name(name)),
              fmt::format("known: {}", fmt::join(architecture_names(), ", ")));
}

}  // namespace octet
