#include "io/quant_dialect.h"

#include "io/module_name.h"

namespace octet {

bool NameSet::add(std::string_view name, int value) {
  const auto [it, added] =
      by_name_.emplace(std::string(without_wrappers(name)), Entry{std::string(name), value});
  return added || it->second.value == value;
}

std::optional<std::pair<std::string_view, int>> NameSet::find(std::string_view module) const {
  if (by_name_.empty()) return std::nullopt;
  const auto lookup =
      [&](std::string_view name) -> std::optional<std::pair<std::string_view, int>> {
    const auto it = by_name_.find(without_wrappers(name));
    if (it == by_name_.end()) return std::nullopt;
    return std::pair(std::string_view(it->second.name), it->second.value);
  };
  if (auto found = lookup(module)) return found;
  const auto fused = fused_name(module);
  return fused ? lookup(*fused) : std::nullopt;
}

bool matches_module(const NamePattern& pattern, std::string_view module) {
  if (pattern.matches(module)) return true;
  const auto fused = fused_name(module);
  return fused && pattern.text().find(last_component(*fused)) != std::string::npos &&
         pattern.matches(*fused);
}

std::optional<std::string_view> expression_of(std::string_view entry) {
  if (!entry.starts_with("re:")) return std::nullopt;
  return entry.substr(3);
}

}  // namespace octet
