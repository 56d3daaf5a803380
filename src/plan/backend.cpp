#include "plan/backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.h"

namespace octet {
namespace {

constexpr std::array kBackends{
    LinearBackend{.name = "xpu",
                  .prefix = "opencl.",
                  .scheme = SchemeId::W8A8,
                  .words = "the W8A8 kernels of OpenCL devices"},
    LinearBackend{.name = "xpu_woq",
                  .prefix = "opencl.",
                  .scheme = SchemeId::W8A16,
                  .words = "the W8A16 kernels of OpenCL devices"},
    LinearBackend{.name = "torch",
                  .prefix = "",
                  .scheme = SchemeId::W8A8,
                  .needs_nothing = true,
                  .words = "the W8A8 kernels that need nothing of their device",
                  .note = "--linear-backend torch: W8A8 in the reference formulation, codes times "
                          "codes with the scales applied in float32; no kernel of PyTorch runs"},
    LinearBackend{.name = "reference",
                  .prefix = "",
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
  return kernel.name.starts_with(backend.prefix) &&
         (!backend.scheme || kernel.scheme == *backend.scheme) &&
         (!backend.needs_nothing || kernel.needs.empty());
}

bool has_kernels_for(const LinearBackend& backend, const DeviceInfo& device,
                     std::span<const LinearKernel* const> catalogue) {
  return std::any_of(catalogue.begin(), catalogue.end(), [&](const LinearKernel* kernel) {
    return kernel->device == device.kind && has_kernel(backend, *kernel);
  });
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
