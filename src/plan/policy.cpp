#include "plan/policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <regex>

#include "base/error.h"

namespace octet {
namespace {

void check_name(std::string_view flag, std::string_view form, const std::string& name,
                std::span<const std::string_view> known) {
  if (std::find(known.begin(), known.end(), name) != known.end()) return;
  throw_error(Code::BadInput, fmt::format("{} \"{}\": no kernel has this name", flag, name),
              fmt::format("expected {}; `octet kernels` lists the names", form));
}

}  // namespace

void check_names(const Policy& policy, std::span<const std::string_view> known) {
  for (const std::string& name : policy.disabled)
    check_name("--disable", "--disable NAME[,NAME...]", name, known);
  for (const KernelRule& rule : policy.forced)
    check_name("--kernel", "--kernel [LAYER-REGEX=]NAME", rule.kernel, known);
}

LayerPolicy for_layer(const Policy& policy, std::string_view module, DType weight,
                      std::span<const LinearKernel* const> catalogue) {
  LayerPolicy layer{.prefer = policy.prefer,
                    .disabled = policy.disabled,
                    .forced = std::nullopt,
                    .carrier = policy.carrier,
                    .quarantine = &policy.quarantine};
  for (const KernelRule& rule : policy.forced) {
    const auto kernel = std::find_if(catalogue.begin(), catalogue.end(),
                                     [&](const LinearKernel* k) { return k->name == rule.kernel; });
    if (kernel == catalogue.end() || !(*kernel)->caps.weight_dtypes.has(weight)) continue;
    if (rule.layers.empty() ||
        std::regex_search(module.begin(), module.end(), std::regex(rule.layers))) {
      layer.forced = rule.kernel;
    }
  }
  if (!layer.forced && policy.backend != nullptr &&
      weight_dtypes(*policy.backend, catalogue).has(weight)) {
    layer.backend = policy.backend;
  }
  return layer;
}

KernelRule parse_kernel_rule(std::string_view text) {
  const size_t equals = text.rfind('=');
  KernelRule rule;
  if (equals != std::string_view::npos) rule.layers = text.substr(0, equals);
  rule.kernel = equals == std::string_view::npos ? text : text.substr(equals + 1);
  if (rule.kernel.empty() || equals == 0) {
    throw_error(Code::BadInput,
                fmt::format("--kernel \"{}\": {}, expected [LAYER-REGEX=]NAME", text,
                            rule.kernel.empty() ? "the name of the kernel is missing"
                                                : "nothing stands before \"=\""),
                "--kernel NAME binds every layer, --kernel 'q_proj|k_proj=NAME' some; `octet "
                "kernels` lists the names");
  }
  try {
    const std::regex compiled(rule.layers);
  } catch (const std::regex_error& e) {
    throw_error(
        Code::BadInput,
        fmt::format("--kernel {}: the layer expression does not compile: {}", text, e.what()),
        "write --kernel [LAYER-REGEX=]NAME; the expression is an ECMAScript one");
  }
  return rule;
}

}  // namespace octet
