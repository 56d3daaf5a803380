#include "io/quant_config.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/printable.h"
#include "io/json_field.h"
#include "io/quant_dialect.h"

namespace octet {
namespace {

constexpr std::string_view kLegacyKey = "compression_config";

// The object that holds the words of quantisation, or nothing. Order as vLLM looks
// (transformers_utils/config.py): the model's own, that of the text part, the legacy key.
std::optional<JsonField> find_config(const JsonField& root) {
  constexpr std::string_view kKey = "quantization_config";
  const auto usable = [](const std::optional<JsonField>& field) {
    return field && !(field->value().is_object() && field->value().empty());
  };
  if (auto own = root.find(kKey); usable(own)) return own;
  if (const auto text = root.find("text_config"); text && text->value().is_object()) {
    if (auto own = text->find(kKey); usable(own)) return own;
  }
  auto legacy = root.find(kLegacyKey);
  if (!usable(legacy)) return std::nullopt;
  // Old writers nest the same object once more.
  if (auto nested = legacy->object().find(kKey); usable(nested)) return nested;
  return legacy;
}

constexpr std::string_view kMethods = "\"compressed-tensors\" and \"fp8\"";

// As transformers, which refuses a quantization_config that names no method.
[[noreturn]] void refuse_no_method(const JsonField& config) {
  throw_error(
      Code::BadInput,
      fmt::format("{} has no \"quant_method\"; supported are {}", config.path(), kMethods),
      config.find("config_groups")
          ? "config_groups are written with \"quant_method\": \"compressed-tensors\": add it"
          : "write the method that the weights were quantised with");
}

std::shared_ptr<QuantDialect> parse_dialect(const JsonField& config) {
  const auto field = config.object().find("quant_method");
  if (!field) {
    // Writers of the legacy key knew one method and did not name it.
    if (!config.path().starts_with(kLegacyKey) || !config.find("config_groups"))
      refuse_no_method(config);
    auto dialect = parse_compressed_tensors(config);
    dialect->notes.push_back(
        fmt::format("{} has no quant_method: read as compressed-tensors", config.path()));
    return dialect;
  }
  const std::string method = field->word();
  if (method == "compressed-tensors") return parse_compressed_tensors(config);
  if (method == "fp8") return parse_fp8(config);
  throw_error(Code::BadInput, fmt::format("{} \"{}\" is not supported; supported are {}",
                                          field->path(), printable_name(method), kMethods));
}

}  // namespace

struct QuantConfig::Impl {
  std::shared_ptr<const QuantDialect> dialect;  // null: nothing is quantised
};

QuantConfig::QuantConfig() : impl_(std::make_shared<Impl>()) {}
QuantConfig::QuantConfig(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

QuantConfig QuantConfig::parse(const nlohmann::json& config) {
  const std::optional<JsonField> found = find_config(JsonField(config, ""));
  if (!found) return {};
  return QuantConfig(std::make_shared<Impl>(Impl{parse_dialect(*found)}));
}

bool QuantConfig::quantised() const {
  return impl_->dialect != nullptr && impl_->dialect->quantised();
}

std::string_view QuantConfig::method() const {
  return impl_->dialect == nullptr ? "none" : std::string_view(impl_->dialect->method);
}

std::string_view QuantConfig::format() const {
  return impl_->dialect == nullptr ? "" : std::string_view(impl_->dialect->format);
}

QuantMatch QuantConfig::explain(std::string_view module, std::string_view class_name) const {
  if (impl_->dialect == nullptr) {
    QuantMatch match;
    match.rule = "config.json has no quantization_config";
    return match;
  }
  return impl_->dialect->explain(module, class_name);
}

std::optional<LayerQuant> QuantConfig::match(std::string_view module,
                                             std::string_view class_name) const {
  QuantMatch found = explain(module, class_name);
  if (found.says != QuantMatch::Says::Quantised) return std::nullopt;
  return found.quant;
}

const std::optional<KvQuant>& QuantConfig::kv_cache() const {
  static const std::optional<KvQuant> none;
  return impl_->dialect == nullptr ? none : impl_->dialect->kv_cache;
}

std::span<const std::string> QuantConfig::notes() const {
  if (impl_->dialect == nullptr) return {};
  return impl_->dialect->notes;
}

}  // namespace octet
