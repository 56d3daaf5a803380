#pragma once
// A linter for checkpoints: what is wrong in the files, whether or not anything can run them. It
// reads headers, scales and every weight once, and goes on after a fault. docs/CHECKS.md lists the
// rules.
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/thread_pool.h"

namespace octet {

// A note is no finding of a fault: it says what was left out, or what has no effect.
enum class Severity : uint8_t { Error, Warning, Note };
constexpr std::string_view name(Severity s) {
  constexpr std::string_view kNames[] = {"error", "warning", "note"};
  return kNames[static_cast<int>(s)];
}

struct InspectRule {
  std::string_view id;  // "scale-zero"
  Severity severity;
  std::string_view meaning;  // one sentence without a full stop
};
// Every rule, in the order of the table of docs/CHECKS.md.
std::span<const InspectRule> inspect_rules();

struct Finding {
  const InspectRule* rule = nullptr;
  std::string subject;   // tensor, module, file or JSON path
  std::string expected;  // may be empty, as may hint
  std::string got;
  std::string hint;
  std::vector<std::string> names;  // all tensors of a finding that is of many; `got` names a few
};

struct Inspection {
  std::string model;              // name of the folder, or ORG/NAME in the Hugging Face cache
  int64_t tensors = 0;            // in the files
  int64_t quantised = 0;          // weights of 8-bit floats among them
  uint64_t bytes = 0;             // read
  std::vector<Finding> findings;  // in the order of the rules, then of the files

  // No errors and no warnings.
  bool clean() const;
};

// `progress` gets the bytes read so far and those of all tensors; what it throws ends the
// inspection. Throws BadInput when `model` is no folder or file with a config.json that is a JSON
// object, or holds no weights at all; Environment when something cannot be read.
Inspection inspect(const std::filesystem::path& model, ThreadPool& pool,
                   const std::function<void(uint64_t, uint64_t)>& progress);

// For people: equal findings of many layers are one, "32 layers: ...".
std::string explain(const Inspection& inspection);
// The same as one JSON object, every finding by itself; docs/JSON.md names its fields.
std::string to_json(const Inspection& inspection);

}  // namespace octet
