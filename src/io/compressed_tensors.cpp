// quant_method "compressed-tensors": groups of targets with their arguments, and an ignore list.
// Format: neuralmagic/compressed-tensors, quantization/quant_config.py, quant_scheme.py and
// utils/match.py.
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/printable.h"
#include "io/module_name.h"
#include "io/quant_args.h"
#include "io/quant_dialect.h"

namespace octet {
namespace {

constexpr std::array<std::string_view, 12> kTopKeys{
    "quant_method",     "format",          "config_groups",
    "ignore",           "kv_cache_scheme", "quantization_status",
    "version",          "sparsity_config", "global_compression_ratio",
    "transform_config", "run_compressed",  "moe_sparsity_config"};
constexpr std::array<std::string_view, 5> kGroupKeys{"targets", "weights", "input_activations",
                                                     "output_activations", "format"};

// Formats whose 8-bit floats lie in the file as Octet reads them. "fakequant" is what the library
// assumes when the field is absent; the dtype of the weights then decides.
constexpr std::array<std::string_view, 4> kFormats{"float-quantized", "naive-quantized",
                                                   "mxfp8-quantized", "fakequant"};
constexpr std::string_view kMicroscaling = "mxfp8-quantized";

// Named schemes that a group may stand for (quantization/quant_scheme.py, PRESET_SCHEMES).
struct Preset {
  std::string_view name;
  std::string_view group;
};
constexpr std::array<Preset, 5> kPresets{{
    {"FP8", R"({"weights": {"type": "float", "strategy": "tensor"},
                "input_activations": {"type": "float", "strategy": "tensor"}})"},
    {"FP8_DYNAMIC", R"({"weights": {"type": "float", "strategy": "channel"},
                "input_activations": {"type": "float", "strategy": "token", "dynamic": true}})"},
    {"FP8_BLOCK",
     R"({"weights": {"type": "float", "strategy": "block", "block_structure": [128, 128]},
         "input_activations": {"type": "float", "strategy": "group", "group_size": 128,
                               "dynamic": true}})"},
    {"MXFP8", R"({"weights": {"type": "float", "group_size": 32, "scale_dtype": "uint8"},
                  "input_activations": {"type": "float", "group_size": 32, "dynamic": true,
                                        "scale_dtype": "uint8"}})"},
    {"MXFP8A16", R"({"weights": {"type": "float", "group_size": 32, "scale_dtype": "uint8"}})"},
}};

struct Group {
  std::string name;
  LayerQuant quant;
};

struct Expression {
  std::string entry;  // as written, "re:..."
  NamePattern pattern;
  int group;
};

class CompressedTensors final : public QuantDialect {
 public:
  explicit CompressedTensors(const JsonField& config);

  bool quantised() const override { return !groups_.empty(); }
  QuantMatch explain(std::string_view module, std::string_view class_name) const override;

 private:
  void read_format(const JsonField& config);
  void read_group(const std::string& name, const JsonField& field);
  void read_preset(const std::string& name, const JsonField& targets);
  void add_group(const std::string& name, const JsonField& args, const JsonField& targets,
                 bool microscaling);
  void add_target(const JsonField& target, int group);
  void read_ignore(const JsonField& list);
  std::optional<std::string> ignored_by(std::string_view module, std::string_view class_name) const;
  std::optional<std::string> nearly_ignored_by(std::string_view module) const;
  // The group of `module` and the target that names it.
  std::optional<std::pair<std::string_view, int>> group_of(std::string_view module,
                                                           std::string_view class_name) const;

  std::vector<Group> groups_;
  NameSet names_;  // targets without "re:"; a class name is one too
  std::vector<std::pair<std::string, int>> classes_;  // the same entries, for class names
  std::vector<Expression> expressions_;               // sorted by entry, as the library tries them
  NameSet ignored_names_;
  std::vector<std::string> ignored_entries_;  // without "re:", sorted
  std::vector<NamePattern> ignored_patterns_;
  UnknownKeys unknown_;
};

bool equals_ignoring_case(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : int{c}; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](char x, char y) { return lower(x) == lower(y); });
}

// True when a target names this class. "LinearBase" is what vLLM calls its own linear class.
bool names_class(std::string_view target, std::string_view class_name) {
  return equals_ignoring_case(target, class_name) ||
         (target == "LinearBase" && class_name == "Linear");
}

void check_no_sparsity(const JsonField& config) {
  const auto sparsity = config.find("sparsity_config");
  if (!sparsity) return;
  const auto format = sparsity->object().find("format");
  const auto targets = sparsity->find("targets");
  const bool dense = !format || format->word() == "dense";
  if (!dense || (targets && !is_empty_value(targets->value()))) {
    (dense ? *targets : *format).fail("nothing: sparse weights are not supported");
  }
}

void check_no_transforms(const JsonField& config) {
  const auto transforms = config.find("transform_config");
  if (!transforms) return;
  const auto groups = transforms->object().find("config_groups");
  if (groups && !is_empty_value(groups->value())) {
    groups->fail("nothing: weight transforms are not supported");
  }
}

// A list that names attention modules only: it speaks of the KV cache, not of linear layers.
bool is_attention_only(const JsonField& targets) {
  const auto list = targets.elements();
  return list.size() == 1 && list[0].string().ends_with("Attention");
}

CompressedTensors::CompressedTensors(const JsonField& config) {
  method = "compressed-tensors";
  unknown_.collect(config, kTopKeys);
  check_no_sparsity(config);
  check_no_transforms(config);
  const auto groups = config.find("config_groups");
  read_format(config);
  if (groups) {
    for (const auto& [name, field] : groups->members()) {
      if (field.value().is_array()) {
        read_preset(name, field);
      } else if (!field.value().is_null()) {
        read_group(name, field);
      }
    }
  }
  std::stable_sort(expressions_.begin(), expressions_.end(),
                   [](const auto& a, const auto& b) { return a.entry < b.entry; });
  if (const auto list = config.find("ignore")) read_ignore(*list);
  if (const auto scheme = config.find("kv_cache_scheme");
      scheme && !scheme->value().is_null() && scheme->value() != nlohmann::json::object()) {
    std::string note;
    kv_cache = parse_kv_args(*scheme, unknown_, note);
    if (!note.empty()) notes.push_back(note);
  }
  const std::vector<std::string> lines = unknown_.notes();
  notes.insert(notes.end(), lines.begin(), lines.end());
}

void check_format(const JsonField& field) {
  const std::string word = field.word();
  if (std::find(kFormats.begin(), kFormats.end(), word) == kFormats.end()) {
    field.fail("float-quantized, naive-quantized or mxfp8-quantized",
               "this build of octet reads 8-bit floats only");
  }
}

void CompressedTensors::read_format(const JsonField& config) {
  const auto field = config.find("format");
  if (!field) return;
  format = field->word();
  const auto groups = config.find("config_groups");
  const bool quantises = groups && !is_empty_value(groups->value());
  if (format == "mixed-precision" || (format == "dense" && !quantises)) return;
  check_format(*field);
}

void CompressedTensors::read_group(const std::string& name, const JsonField& field) {
  field.object();
  unknown_.collect(field, kGroupKeys);
  const JsonField targets = field.at("targets");
  if (is_attention_only(targets)) {
    notes.push_back(
        fmt::format("{}: attention is not quantised, the group has no effect", field.path()));
    return;
  }
  std::string group_format = format;
  if (const auto own = field.find("format")) {
    check_format(*own);
    group_format = own->word();
  }
  if (const auto output = field.find("output_activations");
      output && !is_empty_value(output->value())) {
    notes.push_back(fmt::format("{} has no effect: outputs are not quantised", output->path()));
  }
  add_group(name, field, targets, group_format == kMicroscaling);
}

void CompressedTensors::read_preset(const std::string& name, const JsonField& targets) {
  for (const Preset& preset : kPresets) {
    if (!equals_ignoring_case(name, preset.name)) continue;
    const nlohmann::json group = nlohmann::json::parse(preset.group);
    add_group(name, JsonField(group, targets.path()), targets, false);
    return;
  }
  std::string known;
  for (const Preset& preset : kPresets) known += fmt::format(" {}", preset.name);
  throw_error(Code::BadInput, fmt::format("{} is a list of targets, so its name must be a scheme; "
                                          "supported are{}",
                                          targets.path(), known));
}

void CompressedTensors::add_group(const std::string& name, const JsonField& args,
                                  const JsonField& targets, bool microscaling) {
  Group group{name, {}};
  group.quant.weight = parse_weight_args(args.at("weights"), microscaling, unknown_);
  if (const auto input = args.find("input_activations"); input && !input->value().is_null()) {
    const InputArgs parsed = parse_input_args(*input, microscaling, unknown_);
    group.quant.input = parsed.spec;
    group.quant.per_token_for_tensor = parsed.per_token_for_tensor;
  }
  groups_.push_back(std::move(group));
  for (const JsonField& target : targets.elements()) {
    add_target(target, static_cast<int>(groups_.size()) - 1);
  }
}

void CompressedTensors::add_target(const JsonField& target, int group) {
  const std::string entry = target.string();
  const auto conflict = [&](int other) {
    if (groups_[static_cast<size_t>(other)].quant == groups_[static_cast<size_t>(group)].quant) {
      return;
    }
    target.fail(fmt::format("a target that group \"{}\" does not have with another scheme",
                            printable_name(groups_[static_cast<size_t>(other)].name)));
  };
  if (const auto expression = expression_of(entry)) {
    for (const Expression& other : expressions_) {
      if (other.entry == entry) return conflict(other.group);
    }
    expressions_.push_back({entry, NamePattern(*expression, target.path()), group});
    return;
  }
  if (!names_.add(entry, group)) return conflict(names_.find(entry)->second);
  classes_.emplace_back(entry, group);
}

void CompressedTensors::read_ignore(const JsonField& list) {
  for (const JsonField& field : list.elements()) {
    const std::string entry = field.string();
    if (const auto expression = expression_of(entry)) {
      ignored_patterns_.emplace_back(*expression, field.path());
    } else {
      ignored_names_.add(entry, 0);
      ignored_entries_.push_back(entry);
    }
  }
  std::sort(ignored_entries_.begin(), ignored_entries_.end());
}

std::optional<std::string> CompressedTensors::ignored_by(std::string_view module,
                                                         std::string_view class_name) const {
  if (const auto found = ignored_names_.find(module)) return std::string(found->first);
  for (const NamePattern& pattern : ignored_patterns_) {
    if (matches_module(pattern, module)) return "re:" + pattern.text();
  }
  if (std::binary_search(ignored_entries_.begin(), ignored_entries_.end(), class_name)) {
    return std::string(class_name);
  }
  return std::nullopt;
}

// An entry that names something one level inside `module`: exporters that wrap a layer
// ("q_proj.linear") write the name of the inside.
std::optional<std::string> CompressedTensors::nearly_ignored_by(std::string_view module) const {
  const std::string prefix = std::string(module) + '.';
  const auto it = std::lower_bound(ignored_entries_.begin(), ignored_entries_.end(), prefix);
  if (it == ignored_entries_.end() || !it->starts_with(prefix)) return std::nullopt;
  if (it->find('.', prefix.size()) != std::string::npos) return std::nullopt;
  return *it;
}

std::optional<std::pair<std::string_view, int>> CompressedTensors::group_of(
    std::string_view module, std::string_view class_name) const {
  if (const auto found = names_.find(module)) return found;
  for (const Expression& expression : expressions_) {
    if (matches_module(expression.pattern, module)) {
      return std::pair(std::string_view(expression.entry), expression.group);
    }
  }
  for (const auto& [entry, group] : classes_) {
    if (names_class(entry, class_name)) return std::pair(std::string_view(entry), group);
  }
  return std::nullopt;
}

QuantMatch CompressedTensors::explain(std::string_view module, std::string_view class_name) const {
  QuantMatch match;
  if (const auto entry = ignored_by(module, class_name)) {
    match.rule = fmt::format("ignore \"{}\"", printable_name(*entry));
    return match;
  }
  const auto found = group_of(module, class_name);
  if (!found) {
    match.rule = "no target names it";
    return match;
  }
  const Group& group = groups_[static_cast<size_t>(found->second)];
  match.quant = group.quant;
  if (const auto entry = nearly_ignored_by(module)) {
    match.says = QuantMatch::Says::AsStored;
    match.rule =
        fmt::format("ignore \"{}\", one component longer than the module", printable_name(*entry));
    return match;
  }
  match.says = QuantMatch::Says::Quantised;
  match.rule = fmt::format("config_groups.{} target \"{}\", no ignore entry names it",
                           printable_name(group.name), printable_name(found->first));
  return match;
}

}  // namespace

std::unique_ptr<QuantDialect> parse_compressed_tensors(const JsonField& config) {
  return std::make_unique<CompressedTensors>(config);
}

}  // namespace octet
