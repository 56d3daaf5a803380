#include "io/module_name.h"

#include <array>

namespace octet {
namespace {

constexpr std::array<std::string_view, 3> kWrappers{"model", "language_model", "text_model"};

struct Fused {
  std::string_view part;
  std::string_view whole;
};
constexpr std::array<Fused, 5> kFused{{{"q_proj", "qkv_proj"},
                                       {"k_proj", "qkv_proj"},
                                       {"v_proj", "qkv_proj"},
                                       {"gate_proj", "gate_up_proj"},
                                       {"up_proj", "gate_up_proj"}}};

bool is_wrapper(std::string_view component) {
  for (const std::string_view wrapper : kWrappers) {
    if (component == wrapper) return true;
  }
  return false;
}

}  // namespace

std::string_view last_component(std::string_view name) {
  return name.substr(name.rfind('.') + 1);  // npos + 1 is 0
}

std::string_view without_wrappers(std::string_view name) {
  std::string_view rest = name;
  for (size_t dot = rest.find('.');
       dot != std::string_view::npos && is_wrapper(rest.substr(0, dot)); dot = rest.find('.')) {
    rest.remove_prefix(dot + 1);
  }
  return rest.find('.') == std::string_view::npos ? name : rest;
}

std::optional<std::string> fused_name(std::string_view name) {
  const std::string_view leaf = last_component(name);
  for (const Fused& fused : kFused) {
    if (leaf != fused.part) continue;
    std::string whole(name.substr(0, name.size() - leaf.size()));
    return whole.append(fused.whole);
  }
  return std::nullopt;
}

}  // namespace octet
