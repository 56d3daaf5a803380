#include "plan/refusal_lines.h"

#include <fmt/format.h>

#include <algorithm>

namespace octet {
namespace {

constexpr size_t kColumns = 100;

struct Reason {
  const Refusal* refusal;
  std::vector<std::string_view> kernels;
};

std::vector<Reason> by_reason(std::span<const RefusedKernel> kernels) {
  std::vector<Reason> reasons;
  for (const RefusedKernel& kernel : kernels) {
    for (const Refusal& refusal : kernel.refusals) {
      auto it = std::find_if(reasons.begin(), reasons.end(),
                             [&](const Reason& r) { return *r.refusal == refusal; });
      if (it == reasons.end()) it = reasons.insert(it, Reason{&refusal, {}});
      it->kernels.push_back(kernel.name);
    }
  }
  std::stable_partition(reasons.begin(), reasons.end(),
                        [](const Reason& r) { return r.refusal->code != RefusalCode::Scheme; });
  return reasons;
}

std::string folded(std::span<const std::string_view> names, std::string_view indent) {
  std::string text;
  std::string line(indent);
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string word = fmt::format("{}{}", names[i], i + 1 < names.size() ? "," : "");
    if (line.size() > indent.size() && line.size() + 1 + word.size() > kColumns) {
      text += line + '\n';
      line = indent;
    }
    line += (line.size() > indent.size() ? " " : "") + word;
  }
  return text + line + '\n';
}

}  // namespace

std::string refusal_lines(std::span<const RefusedKernel> kernels, std::string_view indent) {
  std::string text;
  for (const Reason& reason : by_reason(kernels)) {
    text += fmt::format("{}- {}\n", indent, reason.refusal->detail);
    text += folded(reason.kernels, fmt::format("{}      ", indent));
  }
  return text;
}

}  // namespace octet
