#include "plan/plan_diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/error.h"
#include "base/printable.h"
#include "plan/explain.h"

namespace octet {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kHint = "octet plan MODEL --json > FILE writes a plan";

[[noreturn]] void fail(std::string_view source, std::string_view what) {
  throw_error(Code::BadInput, fmt::format("{}: {}", printable(source), what), std::string(kHint));
}

// One linear layer of a plan: what the lines of a difference compare, in their order.
struct LayerWords {
  std::string pattern;
  std::vector<std::pair<std::string_view, std::string>> words;
  bool operator==(const LayerWords&) const = default;
};

// What is read of a plan.
struct PlanWords {
  std::vector<std::pair<std::string_view, std::string>> head;
  std::vector<std::string> modules;  // in the order of the plan
  std::map<std::string, LayerWords> layers;
  std::vector<std::pair<std::string, std::string>> operations;  // name, kernel
  std::vector<std::pair<std::string_view, uint64_t>> bytes;
  std::vector<std::string> notes;
  std::vector<std::string> failures;
};

// Typed access to the fields of one file.
class Reader {
 public:
  explicit Reader(std::string_view source) : source_(source) {}

  const Json& field(const Json& object, std::string_view name) const {
    const auto found = object.find(std::string(name));
    if (found == object.end()) fail(source_, fmt::format("no plan: /{} is missing", name));
    return *found;
  }
  const Json& list(const Json& object, std::string_view name) const {
    const Json& value = field(object, name);
    if (!value.is_array()) wrong(name, "a list", value);
    return value;
  }
  const Json& object(const Json& parent, std::string_view name) const {
    const Json& value = field(parent, name);
    if (!value.is_object()) wrong(name, "an object", value);
    return value;
  }
  // Null is "none": no kernel, no quantised input.
  std::string text(const Json& object, std::string_view name) const {
    const Json& value = field(object, name);
    if (value.is_null()) return "none";
    if (!value.is_string()) wrong(name, "a text", value);
    return printable(value.get<std::string>());
  }
  std::string number(const Json& object, std::string_view name) const {
    return std::to_string(count(object, name));
  }
  uint64_t count(const Json& object, std::string_view name) const {
    const Json& value = field(object, name);
    if (!value.is_number_unsigned()) wrong(name, "a whole number", value);
    return value.get<uint64_t>();
  }
  std::string yes_no(const Json& object, std::string_view name) const {
    const Json& value = field(object, name);
    if (!value.is_boolean()) wrong(name, "true or false", value);
    return value.get<bool>() ? "yes" : "no";
  }
  std::vector<std::string> texts(const Json& object, std::string_view name) const {
    std::vector<std::string> out;
    for (const Json& item : list(object, name)) {
      if (!item.is_string()) wrong(name, "a list of texts", item);
      out.push_back(item.get<std::string>());
    }
    return out;
  }
  void require_object(const Json& value, std::string_view name) const {
    if (!value.is_object()) wrong(name, "objects", value);
  }

 private:
  [[noreturn]] void wrong(std::string_view name, std::string_view expected, const Json& got) const {
    fail(source_,
         fmt::format("no plan: /{}: expected {}, got {}", name, expected, got.type_name()));
  }
  std::string_view source_;
};

Json parsed(const PlanText& file) {
  try {
    Json json = Json::parse(file.text);
    if (json.is_object()) return json;
    fail(file.source, fmt::format("no plan: expected an object, got {}", json.type_name()));
  } catch (const Json::parse_error& error) {
    fail(file.source, fmt::format("a plan is JSON; byte {} does not fit", error.byte));
  } catch (const Json::out_of_range&) {
    fail(file.source, "a plan is JSON; a number in it is too large");
  }
}

void read_layers(const Reader& read, const Json& json, PlanWords& plan) {
  for (const Json& group : read.list(json, "linear")) {
    read.require_object(group, "linear");
    const LayerWords layer{read.text(group, "layers"),
                           {{"scheme", read.text(group, "scheme")},
                            {"kernel", read.text(group, "kernel")},
                            {"weight", read.text(group, "weight")},
                            {"input", read.text(group, "input")},
                            {"N", read.number(group, "n")},
                            {"K", read.number(group, "k")},
                            {"bound", read.yes_no(group, "forced")}}};
    for (const std::string& module : read.texts(group, "modules")) {
      plan.modules.push_back(module);
      plan.layers.emplace(module, layer);
    }
  }
}

PlanWords read_plan(const PlanText& file) {
  const Json json = parsed(file);
  const Reader read(file.source);
  PlanWords plan;
  const Json& device = read.object(json, "device");
  plan.head = {{"model", read.text(json, "model")},
               {"architecture", read.text(json, "architecture")},
               {"device", read.text(device, "kind") + " \"" + read.text(device, "name") + '"'},
               {"threads", read.number(device, "threads")},
               {"dtype", read.text(json, "dtype")},
               {"ranks", read.number(json, "ranks")},
               {"KV dtype", read.text(json, "kv_dtype")},
               {"context", read.number(json, "max_model_len")},
               {"fitting", read.number(json, "fits_tokens")},
               {"runnable", read.yes_no(json, "runnable")}};
  read_layers(read, json, plan);
  for (const Json& op : read.list(json, "operations")) {
    read.require_object(op, "operations");
    plan.operations.emplace_back(read.text(op, "op"), read.text(op, "kernel"));
  }
  const Json& bytes = read.object(json, "bytes");
  for (const std::string_view name :
       {"weights", "copied", "kv_per_token", "kv", "scratch", "device"})
    plan.bytes.emplace_back(name, read.count(bytes, name));
  plan.notes = read.texts(json, "notes");
  plan.failures = read.texts(json, "failures");
  return plan;
}

// One word that is another in the second plan.
struct Change {
  std::string name, before, after;
  bool operator==(const Change&) const = default;
};

// Layers with the same change share it, by their pattern.
struct ChangedLayers {
  std::string pattern;
  std::vector<Change> changes;
  std::string_view only;  // "first" or "second": the other plan lacks them
  size_t count = 1;
};

struct ChangedBytes {
  std::string_view name;
  uint64_t before = 0, after = 0;
};

// Lines of one list that the other lacks.
struct ChangedLines {
  std::vector<std::string> removed, added;
};

struct Difference {
  std::vector<Change> head;
  size_t same_layers = 0;
  std::vector<ChangedLayers> layers;
  std::vector<Change> operations;
  std::vector<ChangedBytes> bytes;
  ChangedLines notes, failures;
};

// Of two lists with the same names.
template <class Words>
std::vector<Change> changed_words(const Words& a, const Words& b) {
  std::vector<Change> changes;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].second != b[i].second)
      changes.push_back({std::string(a[i].first), a[i].second, b[i].second});
  }
  return changes;
}

void add_change(std::vector<ChangedLayers>& list, ChangedLayers change) {
  const auto same = std::find_if(list.begin(), list.end(), [&](const ChangedLayers& c) {
    return c.pattern == change.pattern && c.only == change.only && c.changes == change.changes;
  });
  if (same == list.end()) {
    list.push_back(std::move(change));
  } else {
    ++same->count;
  }
}

void compare_layers(const PlanWords& a, const PlanWords& b, Difference& out) {
  for (const std::string& module : a.modules) {
    const LayerWords& before = a.layers.at(module);
    const auto after = b.layers.find(module);
    if (after == b.layers.end()) {
      add_change(out.layers, {before.pattern, {}, "first"});
    } else if (auto changes = changed_words(before.words, after->second.words); !changes.empty()) {
      add_change(out.layers, {before.pattern, std::move(changes), {}});
    } else {
      ++out.same_layers;
    }
  }
  for (const std::string& module : b.modules) {
    if (!a.layers.contains(module))
      add_change(out.layers, {b.layers.at(module).pattern, {}, "second"});
  }
}

std::vector<Change> changed_operations(const PlanWords& a, const PlanWords& b) {
  constexpr const char* kNone = "not needed";
  const auto kernel_in = [](const PlanWords& plan, const std::string& op) -> std::string {
    for (const auto& [name, kernel] : plan.operations) {
      if (name == op) return kernel;
    }
    return kNone;
  };
  std::vector<Change> changes;
  for (const auto& [op, before] : a.operations) {
    std::string after = kernel_in(b, op);
    if (before != after) changes.push_back({op, before, std::move(after)});
  }
  for (const auto& [op, after] : b.operations) {
    if (kernel_in(a, op) == kNone) changes.push_back({op, kNone, after});
  }
  return changes;
}

ChangedLines changed_lines(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  const auto lacking = [](const std::vector<std::string>& from,
                          const std::vector<std::string>& in) {
    std::vector<std::string> lines;
    std::copy_if(from.begin(), from.end(), std::back_inserter(lines), [&](const auto& line) {
      return std::find(in.begin(), in.end(), line) == in.end();
    });
    return lines;
  };
  return {lacking(a, b), lacking(b, a)};
}

Difference difference(const PlanText& before, const PlanText& after) {
  const PlanWords a = read_plan(before);
  const PlanWords b = read_plan(after);
  Difference out;
  out.head = changed_words(a.head, b.head);
  compare_layers(a, b, out);
  out.operations = changed_operations(a, b);
  for (size_t i = 0; i < a.bytes.size(); ++i) {
    if (a.bytes[i].second != b.bytes[i].second)
      out.bytes.push_back({a.bytes[i].first, a.bytes[i].second, b.bytes[i].second});
  }
  out.notes = changed_lines(a.notes, b.notes);
  out.failures = changed_lines(a.failures, b.failures);
  return out;
}

std::string layers_text(const Difference& diff) {
  if (diff.layers.empty()) return "";
  std::string out = fmt::format("linear layers ({} as before)\n", diff.same_layers);
  for (const ChangedLayers& c : diff.layers) {
    out += fmt::format("  {}  x{}\n", c.pattern, c.count);
    if (!c.only.empty()) out += fmt::format("    only in the {} plan\n", c.only);
    for (const Change& change : c.changes)
      out += fmt::format("    {:8} {} -> {}\n", change.name, change.before, change.after);
  }
  return out;
}

std::string bytes_text(const Difference& diff) {
  std::string out;
  for (const ChangedBytes& c : diff.bytes) {
    const bool more = c.after > c.before;
    out += fmt::format("  {:24} {} -> {} ({}{})\n", c.name, human_bytes(c.before),
                       human_bytes(c.after), more ? '+' : '-',
                       human_bytes(more ? c.after - c.before : c.before - c.after));
  }
  return out.empty() ? "" : "bytes\n" + out;
}

std::string lines_text(std::string_view title, const ChangedLines& lines) {
  std::string out;
  const auto add = [&](const std::vector<std::string>& list, char sign) {
    for (const std::string& line : list) {
      const std::string first = line.substr(0, line.find('\n'));
      out += fmt::format("  {} {}{}\n", sign, printable(first),
                         first.size() < line.size() ? " ..." : "");
    }
  };
  add(lines.removed, '-');
  add(lines.added, '+');
  return out.empty() ? "" : fmt::format("{}\n{}", title, out);
}

Json changes_json(const std::vector<Change>& changes, const char* name) {
  Json list = Json::array();
  for (const Change& c : changes)
    list.push_back({{name, c.name}, {"before", c.before}, {"after", c.after}});
  return list;
}

Json layers_json(const std::vector<ChangedLayers>& layers) {
  Json list = Json::array();
  for (const ChangedLayers& c : layers) {
    list.push_back({{"layers", c.pattern},
                    {"count", c.count},
                    {"only_in", c.only.empty() ? Json(nullptr) : Json(c.only)},
                    {"changes", changes_json(c.changes, "field")}});
  }
  return list;
}

Json lines_json(const ChangedLines& lines) {
  return {{"removed", lines.removed}, {"added", lines.added}};
}

}  // namespace

std::string plan_diff(const PlanText& before, const PlanText& after) {
  const Difference diff = difference(before, after);
  std::string out;
  for (const Change& c : diff.head)
    out += fmt::format("{:13} {} -> {}\n", c.name, c.before, c.after);
  out += layers_text(diff);
  if (!diff.operations.empty()) out += "operations\n";
  for (const Change& c : diff.operations)
    out += fmt::format("  {:24} {} -> {}\n", c.name, c.before, c.after);
  out += bytes_text(diff) + lines_text("notes", diff.notes) + lines_text("failures", diff.failures);
  return out.empty() ? "the plans are the same\n" : out;
}

std::string plan_diff_json(const PlanText& before, const PlanText& after) {
  const Difference diff = difference(before, after);
  Json json{{"head", changes_json(diff.head, "field")},
            {"linear_unchanged", diff.same_layers},
            {"linear", layers_json(diff.layers)},
            {"operations", changes_json(diff.operations, "op")},
            {"bytes", Json::array()},
            {"notes", lines_json(diff.notes)},
            {"failures", lines_json(diff.failures)}};
  for (const ChangedBytes& c : diff.bytes)
    json["bytes"].push_back({{"field", c.name}, {"before", c.before}, {"after", c.after}});
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace octet
