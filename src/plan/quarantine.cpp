#include "plan/quarantine.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "base/error.h"
#include "base/printable.h"
#include "io/json_field.h"

namespace octet {
namespace {

constexpr int64_t kVersion = 1;
constexpr std::string_view kHint = "`octet verify MODEL --quarantine FILE` writes such a file";
constexpr int kMaxDepth = 16;

auto subject_of(const QuarantineEntry& e) {
  return std::tie(e.device, e.device_name, e.kernel, e.scheme, e.n, e.k, e.weight, e.input);
}

std::string text_at(const JsonField& object, std::string_view key) {
  return object.at(key).string();
}

QuarantineEntry parse_entry(const JsonField& field) {
  field.object();
  const JsonField problem = field.at("problem").object();
  QuarantineEntry entry;
  entry.device = text_at(field, "device");
  entry.device_name = text_at(field, "device_name");
  entry.kernel = text_at(field, "kernel");
  entry.reason = text_at(field, "reason");
  entry.octet = text_at(field, "octet");
  entry.input = text_at(problem, "input");
  if (const auto scheme = field.find("scheme")) {
    entry.scheme = scheme->string();
    entry.n = problem.at("n").integer();
    entry.k = problem.at("k").integer();
    entry.weight = text_at(problem, "weight");
  }
  return entry;
}

}  // namespace

QuarantineEntry quarantine_key(const LinearKernel& kernel, const LinearProblem& problem,
                               const DeviceInfo& device) {
  QuarantineEntry entry;
  entry.device = name(device.kind);
  entry.device_name = device.name;
  entry.kernel = kernel.name;
  entry.scheme = name(problem.scheme);
  entry.n = problem.n;
  entry.k = problem.k;
  entry.weight = to_string(problem.weight);
  entry.input = to_string(problem.activation.value_or(QuantSpec{problem.input}));
  return entry;
}

QuarantineEntry quarantine_key(std::string_view kernel, const std::string& problem,
                               const DeviceInfo& device) {
  QuarantineEntry entry;
  entry.device = name(device.kind);
  entry.device_name = device.name;
  entry.kernel = kernel;
  entry.input = problem;
  return entry;
}

bool same_subject(const QuarantineEntry& a, const QuarantineEntry& b) {
  return subject_of(a) == subject_of(b);
}

std::optional<Refusal> Quarantine::refusal(const QuarantineEntry& key) const {
  for (const QuarantineEntry& entry : entries) {
    if (!same_subject(entry, key)) continue;
    return Refusal{RefusalCode::Disabled, fmt::format("quarantined: {}, {}", entry.reason, file)};
  }
  return std::nullopt;
}

void Quarantine::put(QuarantineEntry entry) {
  const auto same = std::find_if(entries.begin(), entries.end(),
                                 [&](const auto& e) { return same_subject(e, entry); });
  if (same == entries.end()) {
    entries.push_back(std::move(entry));
  } else {
    *same = std::move(entry);
  }
}

std::optional<std::string> unknown_kernels_note(const Quarantine& quarantine,
                                                std::span<const std::string_view> known) {
  constexpr size_t kShown = 5;
  std::set<std::string_view> names;
  for (const QuarantineEntry& entry : quarantine.entries) {
    if (std::find(known.begin(), known.end(), entry.kernel) == known.end())
      names.insert(entry.kernel);
  }
  if (names.empty()) return std::nullopt;
  std::string shown;
  for (auto it = names.begin();
       it != names.end() && std::distance(names.begin(), it) < ptrdiff_t{kShown}; ++it)
    shown += fmt::format("{}\"{}\"", it == names.begin() ? "" : ", ", printable_name(*it));
  if (names.size() > kShown) shown += fmt::format(" and {} more", names.size() - kShown);
  return fmt::format(
      "--quarantine {}: entries that name {} have no effect: this program has no "
      "such kernel",
      quarantine.file, shown);
}

Quarantine parse_quarantine(std::string_view text, std::string file) {
  nlohmann::json json;
  try {
    json =
        nlohmann::json::parse(text, [&](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
          if (depth > kMaxDepth) {
            throw_error(Code::BadInput, fmt::format("nested over {} deep", kMaxDepth));
          }
          return true;
        });
    const JsonField root(json, "");
    root.object();
    const JsonField version = root.at("octet_quarantine");
    if (version.integer() != kVersion) version.fail(fmt::format("{}", kVersion));
    Quarantine quarantine{file, {}};
    for (const JsonField& field : root.at("entries").elements()) {
      quarantine.put(parse_entry(field));
    }
    return quarantine;
  } catch (const nlohmann::json::exception& e) {
    throw_error(Code::BadInput, fmt::format("{} is not JSON: {}", file, e.what()),
                std::string(kHint));
  } catch (const Error& error) {
    throw error.with(file).or_hint(kHint);
  }
}

std::string to_json(const Quarantine& quarantine) {
  using Json = nlohmann::ordered_json;
  Json list = Json::array();
  for (const QuarantineEntry& entry : quarantine.entries) {
    Json json{
        {"device", entry.device}, {"device_name", entry.device_name}, {"kernel", entry.kernel}};
    Json problem;
    if (!entry.scheme.empty()) {
      json["scheme"] = entry.scheme;
      problem = {{"n", entry.n}, {"k", entry.k}, {"weight", entry.weight}};
    }
    problem["input"] = entry.input;
    json["problem"] = std::move(problem);
    json["reason"] = entry.reason;
    json["octet"] = entry.octet;
    list.push_back(std::move(json));
  }
  const Json root{{"octet_quarantine", kVersion}, {"entries", std::move(list)}};
  return root.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace octet
