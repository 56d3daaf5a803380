#pragma once
// The catalogue: kernels of one operation register themselves, are listed in an order that does not
// depend on linking, and are chosen by one loop that keeps every refusal.
#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device/device.h"
#include "num/dtype.h"
#include "num/enum_set.h"

namespace octet {

enum class RefusalCode : uint8_t {
  Device,
  Feature,
  Scheme,
  WeightDtype,
  WeightScale,
  ScaleDtype,
  ActivationScale,
  Input,
  Output,
  Shape,
  Disabled,
  Special,
};

// An expected "no": which rule, and a sentence with both values, e.g. "N=5000 is not a multiple of
// 32".
struct Refusal {
  RefusalCode code;
  std::string detail;
  bool operator==(const Refusal&) const = default;
};

// One kernel of an operation that has no schemes. Op names the operation and its types:
//   struct Op { static constexpr std::string_view kName; struct Problem; struct Caps; struct Args;
//   }
// with a free function  void judge(const Op::Caps&, const Op::Problem&, std::vector<Refusal>&).
template <class Op>
struct Kernel {
  std::string_view name;  // "<device>.<op>.<isa>", unique
  DeviceKind device;
  int preference;  // bands as in DESIGN.md, "Resolution": 0-99 is a reference; unique per
                   // device and operation
  Features needs;
  typename Op::Caps caps;
  // Scratch bytes that run() needs for this problem with this many threads; null: none.
  size_t (*scratch_bytes)(const typename Op::Problem&, int threads) = nullptr;
  void (*run)(const typename Op::Args&, Stream&) noexcept;
};

namespace detail {

template <class K>
std::vector<const K*>& registered() {
  static std::vector<const K*> list;
  return list;
}

template <class K>
struct Register {
  explicit Register(const K& kernel) { registered<K>().push_back(&kernel); }
};

// What another device or a missing feature says; empty when neither stands in the way.
std::vector<Refusal> device_refusals(DeviceKind kernel_device, Features needs,
                                     const DeviceInfo& device);

}  // namespace detail

// Every kernel of one type linked into this program, best first (preference, then name).
template <class K>
std::span<const K* const> kernels() {
  static const std::vector<const K*> sorted = [] {
    std::vector<const K*> list = detail::registered<K>();
    std::sort(list.begin(), list.end(), [](const K* a, const K* b) {
      return a->preference != b->preference ? a->preference > b->preference : a->name < b->name;
    });
    return list;
  }();
  return sorted;
}

// Whether a kernel is refused because it is one of another device.
inline bool is_of_another_device(std::span<const Refusal> refusals) {
  return !refusals.empty() && refusals.front().code == RefusalCode::Device;
}

// A kernel and why it cannot run; no refusals: it could.
template <class K>
struct Attempt {
  const K* kernel;
  std::vector<Refusal> refusals;
};

// Every candidate in the order tried, and the first that could run.
template <class K>
struct Selection {
  std::vector<Attempt<K>> attempts;
  std::optional<size_t> chosen;
  std::string problem;  // in words, as a quarantine entry names it

  const K* kernel() const { return chosen ? attempts[*chosen].kernel : nullptr; }
};

// Why `kernel` cannot run `problem` on `device`: all reasons; only the device if it is another one.
template <class Op>
std::vector<Refusal> refusals(const Kernel<Op>& kernel, const typename Op::Problem& problem,
                              const DeviceInfo& device) {
  std::vector<Refusal> out = detail::device_refusals(kernel.device, kernel.needs, device);
  if (!out.empty() && out.front().code == RefusalCode::Device) return out;
  judge(kernel.caps, problem, out);
  return out;
}

// Judges every kernel of `catalogue` (best first); `disabled` names are refused with that reason.
template <class Op>
Selection<Kernel<Op>> select(std::span<const Kernel<Op>* const> catalogue,
                             const typename Op::Problem& problem, const DeviceInfo& device,
                             std::span<const std::string> disabled = {}) {
  Selection<Kernel<Op>> selection;
  for (const Kernel<Op>* kernel : catalogue) {
    Attempt<Kernel<Op>> attempt{kernel, refusals(*kernel, problem, device)};
    if (std::find(disabled.begin(), disabled.end(), kernel->name) != disabled.end()) {
      attempt.refusals.push_back({RefusalCode::Disabled, "disabled by --disable"});
    }
    if (attempt.refusals.empty() && !selection.chosen) selection.chosen = selection.attempts.size();
    selection.attempts.push_back(std::move(attempt));
  }
  return selection;
}

// Runs one kernel on a stream. The only way a forward pass starts an operation.
template <class K, class Args>
void launch(const K& kernel, const Args& args, Stream& stream) noexcept {
  stream.begin_op();
  kernel.run(args, stream);
  stream.end_op();
}

}  // namespace octet

// Registers a constexpr kernel record. Baseline code: safe to run on any CPU before dispatch.
#if defined(OCTET_EMULATED)
#include "op/emulated.h"
#define OCTET_KERNEL(record)                                                                     \
  static const auto octet_emulated_##record = ::octet::emulated(record);                         \
  static const ::octet::detail::Register<std::remove_cvref_t<decltype(octet_emulated_##record)>> \
      octet_register_##record {                                                                  \
    octet_emulated_##record                                                                      \
  }
#else
#define OCTET_KERNEL(record)                                                    \
  static const ::octet::detail::Register<std::remove_cvref_t<decltype(record)>> \
      octet_register_##record {                                                 \
    record                                                                      \
  }
#endif
