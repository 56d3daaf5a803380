// quant_method "fp8": one scheme for every linear layer and a list of exceptions.
// Format: vLLM, quantization/fp8.py; transformers, integrations/finegrained_fp8.py.
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "base/printable.h"
#include "io/module_name.h"
#include "io/quant_args.h"
#include "io/quant_dialect.h"

namespace octet {
namespace {

constexpr std::array<std::string_view, 9> kKeys{
    "quant_method",   "activation_scheme",      "weight_block_size",
    "ignored_layers", "modules_to_not_convert", "fmt",
    "scale_fmt",      "kv_cache_scheme",        "store_dtype"};

class Fp8 final : public QuantDialect {
 public:
  explicit Fp8(const JsonField& config);

  bool quantised() const override { return true; }
  QuantMatch explain(std::string_view module, std::string_view class_name) const override;

 private:
  void read_weight(const JsonField& config);
  void read_input(const JsonField& config);
  std::optional<std::string_view> excluded_by(std::string_view name) const;
  std::optional<std::string_view> nearly_excluded_by(std::string_view module) const;

  LayerQuant quant_;
  bool blocks_ = false;
  std::vector<std::string> excluded_;                  // as written
  std::unordered_set<std::string_view> excluded_set_;  // the same
  // Entries without wrapper components, to the entry as written.
  std::unordered_map<std::string_view, std::string_view> excluded_bare_;
};

Fp8::Fp8(const JsonField& config) {
  method = "fp8";
  UnknownKeys unknown;
  unknown.collect(config, kKeys);
  notes = unknown.notes();
  // DeepSeek's activations with power-of-two scales: codes made with another scale than the
  // checkpoint was tuned for would be wrong in silence.
  if (const auto scale = config.find("scale_fmt"); scale && !is_empty_value(scale->value())) {
    scale->fail("null: activation scales that are powers of two are not supported");
  }
  if (const auto store = config.find("store_dtype"); store && !is_empty_value(store->value())) {
    store->fail("null: experts stored in another format are not supported");
  }
  read_weight(config);
  read_input(config);
  for (const std::string_view key : {"ignored_layers", "modules_to_not_convert"}) {
    if (const auto list = config.find(key)) {
      for (std::string& entry : list->strings()) {
        if (!entry.empty()) excluded_.push_back(std::move(entry));
      }
    }
  }
  for (const std::string& entry : excluded_) {
    excluded_set_.insert(entry);
    excluded_bare_.emplace(without_wrappers(entry), entry);
  }
}

void Fp8::read_weight(const JsonField& config) {
  quant_.weight = {DType::F8E4M3, ScaleTile::tensor(), DType::F32, ScaleTiming::Static};
  if (const auto fmt_field = config.find("fmt")) {
    const std::string word = fmt_field->word();
    if (word != "e4m3" && word != "e5m2") fmt_field->fail("\"e4m3\" or \"e5m2\"");
    if (word == "e5m2") quant_.weight.dtype = DType::F8E5M2;
  }
  const auto block = config.find("weight_block_size");
  if (!block) return;
  constexpr std::string_view kExpected = "null or two whole numbers from 1, [rows, columns]";
  const std::vector<JsonField> sizes = block->elements();
  if (sizes.size() != 2) block->fail(kExpected);
  for (const JsonField& size : sizes) {
    if (size.integer() < 1 || size.integer() > INT32_MAX) block->fail(kExpected);
  }
  quant_.weight.tile = ScaleTile::block(sizes[0].integer(), sizes[1].integer());
  blocks_ = true;
}

void Fp8::read_input(const JsonField& config) {
  const JsonField scheme = config.at("activation_scheme");
  const std::string word = scheme.word();
  QuantSpec input{DType::F8E4M3, ScaleTile::tensor(), DType::F32, ScaleTiming::Static};
  if (word == "dynamic") {
    input.timing = ScaleTiming::Dynamic;
    // Groups run along K, the columns of a block. Without blocks the word leaves open whether a
    // scale is per tensor or per token; per token is what does not mix a batch.
    input.tile = blocks_ ? ScaleTile::group(quant_.weight.tile.cols) : ScaleTile::row();
  } else if (word != "static") {
    scheme.fail("\"static\" or \"dynamic\"");
  } else if (blocks_) {
    scheme.fail("\"dynamic\", since weight_block_size is set");
  }
  quant_.input = input;
}

// Entries are whole paths, short ones ("self_attn.o_proj") or parents ("model.visual"), with the
// wrapper components of another writer or without: any run of components of `name` may be one.
// Configs list hundreds of entries, so the runs are looked up and the entries are not scanned.
std::optional<std::string_view> Fp8::excluded_by(std::string_view name) const {
  const auto ends = [](std::string_view text, size_t from) {
    return std::min(text.find('.', from), text.size());
  };
  for (std::string_view rest = name;; rest.remove_prefix(ends(rest, 0) + 1)) {
    for (size_t end = ends(rest, 0);; end = ends(rest, end + 1)) {
      const auto it = excluded_set_.find(rest.substr(0, end));
      if (it != excluded_set_.end()) return *it;
      if (end == rest.size()) break;
    }
    if (ends(rest, 0) == rest.size()) break;
  }
  const std::string_view bare = without_wrappers(name);
  for (size_t end = ends(bare, 0);; end = ends(bare, end + 1)) {
    const auto it = excluded_bare_.find(bare.substr(0, end));
    if (it != excluded_bare_.end()) return it->second;
    if (end == bare.size()) break;
  }
  return std::nullopt;
}

// transformers also takes an entry as the beginning or the end of the text of a name, so that
// "model.layers.1" leaves layer 10 as it is. vLLM does not.
std::optional<std::string_view> Fp8::nearly_excluded_by(std::string_view module) const {
  for (const std::string& entry : excluded_) {
    if (module.starts_with(entry) || module.ends_with(entry)) return entry;
  }
  return std::nullopt;
}

QuantMatch Fp8::explain(std::string_view module, std::string_view class_name) const {
  QuantMatch match;
  if (class_name != "Linear") {
    match.rule = fmt::format("quant_method fp8 quantises Linear, not {}", class_name);
    return match;
  }
  auto entry = excluded_by(module);
  if (!entry) {
    if (const auto fused = fused_name(module)) entry = excluded_by(*fused);
  }
  if (entry) {
    match.rule = fmt::format("modules_to_not_convert \"{}\"", printable_name(*entry));
    return match;
  }
  match.quant = quant_;
  match.tensor_or_row = !blocks_;
  match.says = QuantMatch::Says::Quantised;
  match.rule = "quant_method fp8, modules_to_not_convert does not name it";
  if (const auto near = nearly_excluded_by(module)) {
    match.says = QuantMatch::Says::AsStored;
    match.rule = fmt::format("modules_to_not_convert \"{}\" by transformers' rule only",
                             printable_name(*near));
  } else if (last_component(module) == "lm_head") {
    // No reader of this dialect quantises the head, and most configs do not list it.
    match.says = QuantMatch::Says::AsStored;
    match.rule = "quant_method fp8 leaves the head as it is stored";
  }
  return match;
}

}  // namespace

std::unique_ptr<QuantDialect> parse_fp8(const JsonField& config) {
  return std::make_unique<Fp8>(config);
}

}  // namespace octet
