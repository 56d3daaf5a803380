#include "plan/backend.h"

#include <fmt/format.h>

#include <array>

#include "base/error.h"

namespace octet {
namespace {

constexpr std::array kBackends{
    LinearBackend{.name = "xpu",
                  .device = DeviceKind::OpenCl,
                  .scheme = SchemeId::W8A8,
                  .words = "the W8A8 kernels of OpenCL devices"},
    LinearBackend{.name = "xpu_woq",
                  .device = DeviceKind::OpenCl,
                  .scheme = SchemeId::W8A16,
                  .words = "the W8A16 kernels of OpenCL devices"},
    LinearBackend{.name = "torch",
                  .device = std::nullopt,
                  .scheme = SchemeId::W8A8,
                  .needs_nothing = true,
                  .words = "the W8A8 kernels that need nothing of their device",
                  .note = "--linear-backend torch: W8A8 in the reference formulation, codes times "
                          "codes with the scales applied in float32; no kernel of PyTorch runs"},
    LinearBackend{.name = "reference",
                  .device = std::nullopt,
                  .scheme = std::nullopt,
                  .needs_nothing = true,
                  .words = "the kernels that need nothing of their device"},
};

}  // namespace

std::span<const LinearBackend> linear_backends() {
  return kBackends;
}

const LinearBackend* find_backend(std::string_view name) {
  if (name == "auto") return nullptr;
  std::string known = "auto";
  for (const LinearBackend& backend : kBackends) {
    if (backend.name == name) return &backend;
    known += fmt::format(", {}", backend.name);
  }
  throw_error(Code::BadInput,
              fmt::format("--linear-backend \"{}\": expected one of {}", name, known));
}

bool has_kernel(const LinearBackend& backend, const LinearKernel& kernel) {
  return (!backend.device || kernel.device == *backend.device) &&
         (!backend.scheme || kernel.scheme == *backend.scheme) &&
         (!backend.needs_nothing || kernel.needs.empty());
}

EnumSet<DType> weight_dtypes(const LinearBackend& backend,
                             std::span<const LinearKernel* const> catalogue) {
  EnumSet<DType> dtypes;
  for (const LinearKernel* kernel : catalogue) {
    if (!has_kernel(backend, *kernel)) continue;
    kernel->caps.weight_dtypes.each([&](DType dtype) { dtypes.insert(dtype); });
  }
  return dtypes;
}

}  // namespace octet
