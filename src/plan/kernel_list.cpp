#include "plan/kernel_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "device/proof.h"
#include "plan/model_plan.h"

namespace octet {
namespace {

std::string takes(const LinearCaps& caps) {
  std::string text = fmt::format("weights {}", to_string(caps.weight_dtypes));
  if (!caps.weight_scales.empty()) {
    text += fmt::format("; scales {} in {}", to_string(caps.weight_scales),
                        to_string(caps.scale_dtypes));
  }
  if (!caps.activation_scales.empty()) {
    text += fmt::format("; input {} codes, scales {}", to_string(caps.activation_dtypes),
                        to_string(caps.activation_scales));
  } else {
    text += fmt::format("; input {}", to_string(caps.inputs));
  }
  if (caps.n_multiple > 1) text += fmt::format("; N a multiple of {}", caps.n_multiple);
  if (caps.k_multiple > 1) text += fmt::format("; K a multiple of {}", caps.k_multiple);
  return text;
}

std::string multiple(int64_t n) {
  return n > 1 ? fmt::format("a multiple of {}", n) : "any";
}

std::string takes(const Attention::Caps& caps) {
  return fmt::format("KV {}; head_dim {}, at most {}", to_string(caps.kv_dtypes),
                     multiple(caps.head_dim_multiple), caps.max_head_dim);
}
std::string takes(const RmsNorm::Caps& caps) {
  return fmt::format("width {}", multiple(caps.width_multiple));
}
std::string takes(const Rope::Caps& caps) {
  return fmt::format("KV {}; rotary_dim {}; {}", to_string(caps.kv_dtypes),
                     multiple(caps.rotary_multiple),
                     caps.interleaved ? "halves or neighbouring pairs" : "halves");
}
std::string takes(const Quantize::Caps& caps) {
  return fmt::format("to {}; scales {} in {}", to_string(caps.outputs), to_string(caps.scales),
                     to_string(caps.scale_dtypes));
}
std::string takes(const Gather::Caps& caps) {
  return fmt::format("table {}", to_string(caps.tables));
}
// Operations that take float32 and nothing else.
template <class Caps>
requires std::is_empty_v<Caps> std::string takes(const Caps&) {
  return "f32";
}

template <class Op>
void append(std::vector<KernelRow>& rows) {
  for (const Kernel<Op>* k : kernels<Kernel<Op>>()) {
    rows.push_back({std::string(k->name), std::string(name(k->device)), std::string(Op::kName), "",
                    to_string(k->needs), takes(k->caps), k->preference,
                    std::string(proof_of(k->device, k->needs))});
  }
}

}  // namespace

std::vector<KernelRow> kernel_rows() {
  std::vector<KernelRow> rows;
  for (const LinearKernel* k : kernels<LinearKernel>()) {
    rows.push_back({std::string(k->name), std::string(name(k->device)), "linear",
                    std::string(name(k->scheme)), to_string(k->needs), takes(k->caps),
                    k->preference, std::string(proof_of(k->device, k->needs))});
  }
  append<Attention>(rows);
  append<RmsNorm>(rows);
  append<Rope>(rows);
  append<SiluMul>(rows);
  append<RoundBf16>(rows);
  append<Quantize>(rows);
  append<Gather>(rows);
  append<ArgMax>(rows);
  append<TopK>(rows);
  append<LogProb>(rows);
  append<Sample>(rows);
  append<AbsMax>(rows);
  return rows;
}

std::string kernels_text(const std::vector<KernelRow>& rows) {
  size_t width = 0;
  for (const KernelRow& row : rows) width = std::max(width, row.name.size());
  constexpr std::string_view kPreference = "preference";  // within an operation, higher is first
  const auto line = [&](std::string_view name, const auto& preference, std::string_view words) {
    return fmt::format("{:{}}  {:>{}}  {}\n", name, width, preference, kPreference.size(), words);
  };
  std::string out = line("kernel", kPreference, "needs, takes, and where it ran");
  out += line(std::string(width, '-'), std::string(kPreference.size(), '-'), std::string(30, '-'));
  for (const KernelRow& row : rows) {
    out += line(row.name, row.preference, "needs " + row.needs);
    out += line("", "", "takes " + row.takes);
    out += line("", "", row.proof);
  }
  return out;
}

std::string kernels_json(const std::vector<KernelRow>& rows) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const KernelRow& row : rows) {
    list.push_back({{"name", row.name},
                    {"device", row.device},
                    {"op", row.op},
                    {"scheme", row.scheme.empty() ? nlohmann::ordered_json(nullptr)
                                                  : nlohmann::ordered_json(row.scheme)},
                    {"isa", row.needs},
                    {"takes", row.takes},
                    {"preference", row.preference},
                    {"proof", row.proof}});
  }
  return list.dump(2);
}

std::string kernels_markdown(const std::vector<KernelRow>& rows) {
  std::string out =
      "# Kernels\n\nMade by `octet kernels --markdown`; `check.sh` fails when it is stale. Within "
      "an operation the kernel with "
      "the higher\npreference is tried first.\n\n| kernel | preference | needs | takes | proof "
      "|\n| "
      "--- | ---: | --- | --- | --- |\n";
  for (const KernelRow& row : rows) {
    out += fmt::format("| `{}` | {} | {} | {} | {} |\n", row.name, row.preference, row.needs,
                       row.takes, row.proof);
  }
  return out;
}

}  // namespace octet
