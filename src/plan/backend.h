#pragma once
// --linear-backend: sets of linear kernels by the words that users of vLLM know, one row each.
#include <optional>
#include <span>
#include <string_view>

#include "op/linear.h"

namespace octet {

// A set of linear kernels. It binds the layers whose stored weight dtype one of them takes, as
// --kernel does with one kernel.
struct LinearBackend {
  std::string_view name;
  std::string_view prefix;         // of the names of its kernels: "opencl."; empty: of all
  std::optional<SchemeId> scheme;  // of its kernels; nullopt: every scheme
  // Only kernels that need nothing of their device: on a CPU the references, on an OpenCL device
  // the plain family.
  bool needs_nothing = false;
  std::string_view words;      // "the W8A8 kernels of OpenCL devices"
  std::string_view note = {};  // what a plan says about it, or empty
};

// Every row, and none for "auto", which binds nothing.
std::span<const LinearBackend> linear_backends();

// The row called `name`; null for "auto". Throws BadInput for another word.
const LinearBackend* find_backend(std::string_view name);

// Whether `kernel` is one of the backend's.
bool has_kernel(const LinearBackend& backend, const LinearKernel& kernel);

// Whether a kernel of the backend is one of this device's kind.
bool has_kernels_for(const LinearBackend& backend, const DeviceInfo& device,
                     std::span<const LinearKernel* const> catalogue);

// The dtypes of weights that kernels of the backend take.
EnumSet<DType> weight_dtypes(const LinearBackend& backend,
                             std::span<const LinearKernel* const> catalogue);

}  // namespace octet
