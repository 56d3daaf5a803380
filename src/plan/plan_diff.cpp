#include "plan/plan_diff.h"

#include <fmt/format.h>

#include <algorithm>
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

std::string changed(std::string_view name, std::string_view before, std::string_view after) {
  return fmt::format("    {:8} {} -> {}\n", name, before, after);
}

std::string head_lines(const PlanWords& a, const PlanWords& b) {
  std::string out;
  for (size_t i = 0; i < a.head.size(); ++i) {
    const auto& [name, before] = a.head[i];
    if (before != b.head[i].second)
      out += fmt::format("{:13} {} -> {}\n", name, before, b.head[i].second);
  }
  return out;
}

std::string layer_changes(const LayerWords& a, const LayerWords& b) {
  std::string out;
  for (size_t i = 0; i < a.words.size(); ++i) {
    if (a.words[i].second != b.words[i].second)
      out += changed(a.words[i].first, a.words[i].second, b.words[i].second);
  }
  return out;
}

// Layers with the same change share it, by their pattern.
struct ChangedLayers {
  std::string pattern, change;
  size_t count = 0;
};

void add_change(std::vector<ChangedLayers>& list, const std::string& pattern, std::string change) {
  const auto same = std::find_if(list.begin(), list.end(), [&](const ChangedLayers& c) {
    return c.pattern == pattern && c.change == change;
  });
  if (same == list.end()) {
    list.push_back({pattern, std::move(change), 1});
  } else {
    ++same->count;
  }
}

std::string layer_lines(const PlanWords& a, const PlanWords& b) {
  std::vector<ChangedLayers> list;
  size_t same = 0;
  for (const std::string& module : a.modules) {
    const LayerWords& before = a.layers.at(module);
    const auto after = b.layers.find(module);
    if (after == b.layers.end()) {
      add_change(list, before.pattern, "    only in the first plan\n");
    } else if (std::string change = layer_changes(before, after->second); !change.empty()) {
      add_change(list, before.pattern, std::move(change));
    } else {
      ++same;
    }
  }
  for (const std::string& module : b.modules) {
    if (!a.layers.contains(module))
      add_change(list, b.layers.at(module).pattern, "    only in the second plan\n");
  }
  if (list.empty()) return "";
  std::string out = fmt::format("linear layers ({} as before)\n", same);
  for (const ChangedLayers& c : list)
    out += fmt::format("  {}  x{}\n{}", c.pattern, c.count, c.change);
  return out;
}

std::string operation_lines(const PlanWords& a, const PlanWords& b) {
  std::string out;
  const auto kernel_in = [](const PlanWords& plan, const std::string& op) -> std::string {
    for (const auto& [name, kernel] : plan.operations) {
      if (name == op) return kernel;
    }
    return "not needed";
  };
  for (const auto& [op, before] : a.operations) {
    const std::string after = kernel_in(b, op);
    if (before != after) out += fmt::format("  {:24} {} -> {}\n", op, before, after);
  }
  for (const auto& [op, after] : b.operations) {
    if (kernel_in(a, op) == "not needed")
      out += fmt::format("  {:24} not needed -> {}\n", op, after);
  }
  return out.empty() ? "" : "operations\n" + out;
}

std::string byte_lines(const PlanWords& a, const PlanWords& b) {
  std::string out;
  for (size_t i = 0; i < a.bytes.size(); ++i) {
    const auto& [name, before] = a.bytes[i];
    const uint64_t after = b.bytes[i].second;
    if (before == after) continue;
    out += fmt::format("  {:24} {} -> {} ({}{})\n", name, human_bytes(before), human_bytes(after),
                       after > before ? '+' : '-',
                       human_bytes(after > before ? after - before : before - after));
  }
  return out.empty() ? "" : "bytes\n" + out;
}

// Lines of one list that the other lacks.
std::string text_lines(std::string_view title, const std::vector<std::string>& a,
                       const std::vector<std::string>& b) {
  std::string out;
  const auto lacking = [&](const std::vector<std::string>& from, const std::vector<std::string>& in,
                           char sign) {
    for (const std::string& line : from) {
      if (std::find(in.begin(), in.end(), line) != in.end()) continue;
      const std::string first = line.substr(0, line.find('\n'));
      out += fmt::format("  {} {}{}\n", sign, printable(first),
                         first.size() < line.size() ? " ..." : "");
    }
  };
  lacking(a, b, '-');
  lacking(b, a, '+');
  return out.empty() ? "" : fmt::format("{}\n{}", title, out);
}

}  // namespace

std::string plan_diff(const PlanText& before, const PlanText& after) {
  const PlanWords a = read_plan(before);
  const PlanWords b = read_plan(after);
  const std::string out = head_lines(a, b) + layer_lines(a, b) + operation_lines(a, b) +
                          byte_lines(a, b) + text_lines("notes", a.notes, b.notes) +
                          text_lines("failures", a.failures, b.failures);
  return out.empty() ? "the plans are the same\n" : out;
}

}  // namespace octet
