#pragma once
// Kernels that gave wrong numbers on a machine, as `octet verify` found them. A plan refuses each
// of them for the problems it failed on, and for no other.
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "op/linear.h"

namespace octet {

// One kernel on one problem. The words are those of the plan; empty where an operation has none.
struct QuarantineEntry {
  std::string device;       // "cpu"
  std::string device_name;  // of the product: a fault may be of one chip alone
  std::string kernel;
  std::string scheme;    // of a linear kernel
  int64_t n = 0, k = 0;  // of a linear kernel, in elements
  std::string weight;    // how a linear kernel reads the weight, "f8e4m3/row/bf16/static"
  // What a linear kernel takes ("bf16", "f8e4m3/row/f32/dynamic"), or the problem of another
  // operation (op/problem_text.h): what a quantizer makes, "width 576" of a norm.
  std::string input;
  std::string reason;  // "error 3.2e+04 times its bound"
  std::string octet;   // version of the program that found it
};

// The entry of a kernel on a problem, without reason and version.
QuarantineEntry quarantine_key(const LinearKernel& kernel, const LinearProblem& problem,
                               const DeviceInfo& device);
// The same of a kernel without scheme; `problem` in the words of Selection.
QuarantineEntry quarantine_key(std::string_view kernel, const std::string& problem,
                               const DeviceInfo& device);

// True when both speak of the same kernel, problem and device.
bool same_subject(const QuarantineEntry& a, const QuarantineEntry& b);

// A quarantine file. An empty one refuses nothing.
struct Quarantine {
  std::string file;  // for messages
  std::vector<QuarantineEntry> entries;

  // "quarantined: REASON, FILE" when an entry has the subject of `key`.
  std::optional<Refusal> refusal(const QuarantineEntry& key) const;
  // Adds an entry in place of one with the same subject.
  void put(QuarantineEntry entry);
};

// A remark when entries name kernels outside `known`, those of this program: they refuse nothing.
std::optional<std::string> unknown_kernels_note(const Quarantine& quarantine,
                                                std::span<const std::string_view> known);

// Reads the text of a quarantine file. Throws BadInput naming the file and the JSON path.
Quarantine parse_quarantine(std::string_view text, std::string file);

// The text of a quarantine file; docs/JSON.md names its fields.
std::string to_json(const Quarantine& quarantine);

}  // namespace octet
