// Entries of a quantisation config that name nothing.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "evaluate/inspect_parts.h"
#include "io/module_name.h"
#include "io/quant_dialect.h"

namespace octet {
namespace {

using Json = nlohmann::json;

// The quantisation config of a config.json, or null.
const Json* quantization_config(const Json& config) {
  const auto member = [](const Json& object, const char* key) -> const Json* {
    const auto it = object.find(key);
    return it != object.end() && it->is_object() ? &*it : nullptr;
  };
  for (const char* key : {"quantization_config", "compression_config"}) {
    if (const Json* found = member(config, key)) return found;
  }
  const Json* text = member(config, "text_config");
  return text == nullptr ? nullptr : member(*text, "quantization_config");
}

using Modules = std::set<std::string, std::less<>>;

// Modules that have a weight: "model.layers.3.mlp.up_proj".
Modules weight_modules(const TensorSet& tensors) {
  Modules modules;
  for (const StoredTensor& tensor : tensors.all()) {
    if (const auto module = module_of_weight(tensor.name)) modules.emplace(*module);
  }
  return modules;
}

// Modules that the files or every decoder have, parents of them included: "model.layers.3.mlp".
Modules all_modules(const TensorSet& tensors) {
  Modules modules{"lm_head"};
  for (const StoredTensor& tensor : tensors.all()) {
    for (size_t dot = tensor.name.rfind('.'); dot != std::string_view::npos && dot != 0;
         dot = tensor.name.rfind('.', dot - 1)) {
      if (!modules.emplace(tensor.name.substr(0, dot)).second) break;  // so are its parents
    }
  }
  return modules;
}

// True for "Linear" and other names of classes: which modules are of a class, no file says.
bool is_class(std::string_view entry) {
  return entry.find('.') == std::string_view::npos && !entry.empty() && entry[0] >= 'A' &&
         entry[0] <= 'Z';
}

bool equals_word(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return (x | 0x20) == (y | 0x20); });
}

// True when `run` is a run of whole components of `name`.
bool has_components(std::string_view name, std::string_view run) {
  for (size_t at = name.find(run); at != std::string_view::npos; at = name.find(run, at + 1)) {
    const size_t end = at + run.size();
    if ((at == 0 || name[at - 1] == '.') && (end == name.size() || name[end] == '.')) return true;
  }
  return false;
}

class PatternRules {
 public:
  PatternRules(const TensorSet& tensors, Findings& out)
      : modules_(all_modules(tensors)), weights_(weight_modules(tensors)), out_(out) {}

  void check_list(const Json* list, const std::string& path,
                  bool (PatternRules::*matches)(const std::string&) const) {
    if (list == nullptr || !list->is_array()) return;
    for (size_t i = 0; i < list->size(); ++i) {
      if (!(*list)[i].is_string()) continue;  // parsing has refused it
      const std::string entry = (*list)[i].get<std::string>();
      if (entry.empty() || (this->*matches)(entry)) continue;
      out_.add("pattern-unused", fmt::format("{}[{}]", path, i), "the name of a module",
               fmt::format("\"{}\", which matches none", entry),
               "a layer that it was meant for is quantised, or is not, against the intention");
    }
  }

  // compressed-tensors: names, classes and "re:" expressions.
  bool matches_target(const std::string& entry) const {
    if (const auto expression = expression_of(entry)) {
      try {
        const NamePattern pattern(*expression, entry);
        return std::any_of(modules_.begin(), modules_.end(), [&](const std::string& module) {
          return matches_module(pattern, module);
        });
      } catch (const Error&) {
        return true;  // one that does not compile is the config's fault, and told as such
      }
    }
    if (is_class(entry) || equals_word(entry, "linear")) return true;
    // Exporters that wrap a layer write the name of the inside.
    return names_one_of(modules_, entry) ||
           names_one_of(weights_, entry.substr(0, entry.rfind('.')));
  }

  // fp8: any run of components, with the wrappers of either side.
  bool matches_exclusion(const std::string& entry) const {
    const std::string_view bare = without_wrappers(entry);
    const auto fused_part = [&](const std::string& module) {
      const auto fused = fused_name(module);
      return fused && has_components(*fused, bare);
    };
    return std::any_of(modules_.begin(), modules_.end(), [&](const std::string& module) {
      return has_components(module, bare) || fused_part(module);
    });
  }

 private:
  static bool names_one_of(const Modules& modules, const std::string& entry) {
    NameSet set;
    set.add(entry, 0);
    return std::any_of(modules.begin(), modules.end(),
                       [&](const std::string& module) { return set.find(module).has_value(); });
  }

  const Modules modules_, weights_;
  Findings& out_;
};

const Json* member(const Json& object, const char* key) {
  const auto it = object.find(key);
  return it == object.end() ? nullptr : &*it;
}

}  // namespace

void inspect_patterns(const Inspected& model, Findings& out) {
  const Json* config = quantization_config(*model.config);
  if (config == nullptr || !model.complete) return;
  PatternRules rules(model.tensors, out);
  const std::string path = "quantization_config";
  if (const Json* groups = member(*config, "config_groups"); groups && groups->is_object()) {
    for (const auto& [name, group] : groups->items()) {
      const std::string at = fmt::format("{}.config_groups.{}", path, name);
      if (group.is_array()) rules.check_list(&group, at, &PatternRules::matches_target);
      if (group.is_object()) {
        rules.check_list(member(group, "targets"), at + ".targets", &PatternRules::matches_target);
      }
    }
  }
  rules.check_list(member(*config, "ignore"), path + ".ignore", &PatternRules::matches_target);
  for (const char* key : {"modules_to_not_convert", "ignored_layers"}) {
    rules.check_list(member(*config, key), fmt::format("{}.{}", path, key),
                     &PatternRules::matches_exclusion);
  }
}

}  // namespace octet
