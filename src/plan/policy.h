#pragma once
// What the user asks of a plan, in the resolver's words.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "op/linear.h"
#include "plan/backend.h"
#include "plan/quarantine.h"

namespace octet {

// --dtype: which carriers of a linear layer's input are admitted, and whether layer boundaries are
// rounded.
enum class Carrier : uint8_t {
  Auto,  // what the kernel takes
  F32,   // only kernels with float32 input
  BF16,  // values are rounded to bfloat16 at layer boundaries, as transformers does
};
constexpr std::string_view name(Carrier c) {
  constexpr std::string_view kNames[] = {"auto", "float32", "bfloat16"};
  return kNames[static_cast<int>(c)];
}

// --kernel [LAYER-REGEX=]NAME: binds layers whose name the expression finds and whose stored weight
// dtype the kernel takes.
struct KernelRule {
  std::string layers;  // ECMAScript expression, searched for in the module name; empty: every layer
  std::string kernel;
};

struct Policy {
  std::optional<SchemeId> prefer;     // this scheme is tried before the others
  std::vector<std::string> disabled;  // kernel names
  std::vector<KernelRule> forced;
  const LinearBackend* backend = nullptr;  // binds the layers that no rule of `forced` binds
  Carrier carrier = Carrier::Auto;
  Quarantine quarantine = {};
};

// What the policy means for one layer.
struct LayerPolicy {
  std::optional<SchemeId> prefer;
  std::vector<std::string> disabled;
  std::optional<std::string> forced;       // the layer is bound to this kernel
  const LinearBackend* backend = nullptr;  // the layer is bound to its kernels
  Carrier carrier = Carrier::Auto;
  const Quarantine* quarantine = nullptr;  // of the policy that this one is made of
};

// Throws BadInput for a --kernel or --disable name that no kernel of the program has.
void check_names(const Policy& policy, std::span<const std::string_view> known);

// Narrows `policy` to a layer whose weights are stored as `weight`.
LayerPolicy for_layer(const Policy& policy, std::string_view module, DType weight,
                      std::span<const LinearKernel* const> catalogue);

// "[LAYER-REGEX=]NAME" as --kernel takes it. Throws BadInput when the expression does not compile.
KernelRule parse_kernel_rule(std::string_view text);

}  // namespace octet
