// Findings for people and for programs.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>

#include "base/plural.h"
#include "base/printable.h"
#include "evaluate/inspect.h"

namespace octet {
namespace {

using Json = nlohmann::ordered_json;

// `subject` with the numbers among its components as "*".
std::string pattern_of(std::string_view subject) {
  std::string out;
  for (size_t begin = 0; begin <= subject.size();) {
    const size_t end = std::min(subject.find('.', begin), subject.size());
    const std::string_view part = subject.substr(begin, end - begin);
    const bool number = !part.empty() && std::all_of(part.begin(), part.end(),
                                                     [](char c) { return c >= '0' && c <= '9'; });
    if (begin != 0) out += '.';
    out += number ? "*" : part;
    begin = end + 1;
  }
  return out;
}

// Findings of one rule on tensors that differ in their numbers only.
struct Group {
  const Finding* first;
  std::string pattern;
  int64_t count = 0;
  bool alike = true;  // all say the same
};

std::vector<Group> grouped(const std::vector<Finding>& findings) {
  std::vector<Group> groups;
  for (const Finding& finding : findings) {
    std::string pattern = pattern_of(finding.subject);
    auto it = std::find_if(groups.begin(), groups.end(), [&](const Group& g) {
      return g.first->rule == finding.rule && g.pattern == pattern;
    });
    if (it == groups.end()) it = groups.insert(it, Group{&finding, std::move(pattern)});
    ++it->count;
    it->alike =
        it->alike && it->first->expected == finding.expected && it->first->got == finding.got;
  }
  return groups;
}

std::string group_text(const Group& group) {
  const Finding& f = *group.first;
  const bool one = group.count == 1;
  std::string out = fmt::format(
      "{} {}: {}", name(f.rule->severity), f.rule->id,
      one ? printable_name(f.subject)
          : fmt::format("{}: {}", counted(group.count, "layer"), printable_name(group.pattern)));
  std::string body;
  if (!f.expected.empty()) body += fmt::format("expected {}", f.expected);
  if (!f.got.empty()) body += fmt::format("{}{}", f.expected.empty() ? "" : ", got ", f.got);
  if (!body.empty()) {
    out += fmt::format(
        "\n  {}{}",
        one || group.alike ? std::string() : fmt::format("{}: ", printable_name(f.subject)),
        printable_line(body));
  }
  if (!f.hint.empty()) out += fmt::format("\n  hint: {}", printable_line(f.hint));
  return out + "\n";
}

}  // namespace

std::string explain(const Inspection& inspection) {
  std::string out;
  std::array<int64_t, 3> counts{};
  for (const Group& group : grouped(inspection.findings)) out += group_text(group);
  for (const Finding& finding : inspection.findings)
    ++counts[static_cast<size_t>(finding.rule->severity)];
  return out + fmt::format("{}: {} read ({} of 8-bit floats): {}, {}, {}\n",
                           printable_name(inspection.model), counted(inspection.tensors, "tensor"),
                           inspection.quantised, counted(counts[0], "error"),
                           counted(counts[1], "warning"), counted(counts[2], "note"));
}

std::string to_json(const Inspection& inspection) {
  Json json{{"model", inspection.model},
            {"clean", inspection.clean()},
            {"tensors", inspection.tensors},
            {"quantised", inspection.quantised},
            {"bytes", inspection.bytes}};
  json["findings"] = Json::array();
  for (const Finding& f : inspection.findings) {
    json["findings"].push_back({{"rule", f.rule->id},
                                {"severity", name(f.rule->severity)},
                                {"subject", f.subject},
                                {"expected", f.expected},
                                {"got", f.got},
                                {"hint", f.hint}});
    if (!f.names.empty()) json["findings"].back()["names"] = f.names;
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace octet
