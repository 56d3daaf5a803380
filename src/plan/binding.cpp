#include "plan/binding.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <regex>

#include "base/error.h"

namespace octet {
namespace {

std::string words_of(const KernelRule& rule) {
  return rule.layers.empty() ? fmt::format("--kernel {}", rule.kernel)
                             : fmt::format("--kernel {}={}", rule.layers, rule.kernel);
}

// The first and the last layers: of the decoder, and the head.
std::string some_layers(const PlanRequest& request) {
  std::vector<std::string_view> names;
  for (const PlanLayer& layer : request.layers) names.push_back(layer.module);
  if (names.size() > 4) names.erase(names.begin() + 2, names.end() - 2);
  return fmt::format("layers have names like {}; the expression may match a part of one",
                     fmt::join(names, ", "));
}

void check_rule(const PlanRequest& request, const KernelRule& rule, const LinearKernel& kernel) {
  const std::regex expression(rule.layers);
  bool found = false;
  EnumSet<DType> stored;
  for (const PlanLayer& layer : request.layers) {
    if (!rule.layers.empty() && !std::regex_search(layer.module, expression)) continue;
    if (kernel.caps.weight_dtypes.has(layer.quant.weight.dtype)) return;
    found = true;
    stored.insert(layer.quant.weight.dtype);
  }
  if (!found) {
    throw_error(Code::BadInput,
                fmt::format("{} binds no layer of {}: no layer has a name that \"{}\" finds",
                            words_of(rule), request.model, rule.layers),
                some_layers(request));
  }
  throw_error(
      Code::BadInput,
      fmt::format("{} binds no layer of {}: the kernel takes weights of {}, {} stored as {}",
                  words_of(rule), request.model, to_string(kernel.caps.weight_dtypes),
                  rule.layers.empty() ? "the layers are" : "the layers found are",
                  to_string(stored)),
      "`octet kernels` lists what each kernel takes");
}

void check_backend(const PlanRequest& request, const LinearBackend& backend,
                   std::span<const LinearKernel* const> catalogue) {
  const EnumSet<DType> taken = weight_dtypes(backend, catalogue);
  EnumSet<DType> stored;
  for (const PlanLayer& layer : request.layers) {
    if (taken.has(layer.quant.weight.dtype)) return;
    stored.insert(layer.quant.weight.dtype);
  }
  throw_error(
      Code::BadInput,
      fmt::format("--linear-backend {} binds no layer of {}: {} take weights of {}, the "
                  "layers are stored as {}",
                  backend.name, request.model, backend.words, to_string(taken), to_string(stored)),
      "leave out --linear-backend; `octet kernels` lists what each kernel takes");
}

}  // namespace

std::optional<std::string> foreign_backend(const Policy& policy, const DeviceInfo& device,
                                           std::span<const LinearKernel* const> catalogue) {
  const LinearBackend* backend = policy.backend;
  if (backend == nullptr || has_kernels_for(*backend, device, catalogue)) return std::nullopt;
  const auto other = std::find_if(catalogue.begin(), catalogue.end(),
                                  [&](const LinearKernel* k) { return has_kernel(*backend, *k); });
  return fmt::format(
      "--linear-backend {} asks for {}; the device is {} \"{}\"\n  try: {}another "
      "--linear-backend",
      backend->name, backend->words, name(device.kind), device.name,
      other == catalogue.end() ? "" : fmt::format("--device {}, or ", name((*other)->device)));
}

void check_bindings(const PlanRequest& request, const Policy& policy,
                    std::span<const LinearKernel* const> catalogue) {
  for (const KernelRule& rule : policy.forced) {
    const auto kernel = std::find_if(catalogue.begin(), catalogue.end(),
                                     [&](const LinearKernel* k) { return k->name == rule.kernel; });
    if (kernel == catalogue.end()) {
      throw_error(Code::BadInput,
                  fmt::format("{} binds no layer of {}: it is not a kernel of linear layers",
                              words_of(rule), request.model),
                  "--disable NAME keeps a kernel of another operation out");
    }
    check_rule(request, rule, **kernel);
  }
  if (policy.backend != nullptr) check_backend(request, *policy.backend, catalogue);
}

}  // namespace octet
