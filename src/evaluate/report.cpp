#include "evaluate/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/printable.h"

namespace octet {
namespace {

using Json = nlohmann::ordered_json;

// Beginnings of access tokens (Hugging Face, OpenAI, GitHub, GitLab, Slack, AWS).
constexpr std::array<std::string_view, 9> kTokenStarts{
    "hf_", "sk-", "ghp_", "gho_", "github_pat_", "glpat-", "xox", "AKIA", "api_"};
constexpr size_t kTokenLength = 16;  // of what follows; shorter words are names

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-';
}

size_t word_end(std::string_view text, size_t begin) {
  while (begin < text.size() && is_word(text[begin])) ++begin;
  return begin;
}

// Length of the user's folder at `at`: "/home/name"; 0 for none.
size_t user_folder(std::string_view text, size_t at) {
  const std::string_view rest = text.substr(at);
  for (const std::string_view root : {"/home/", "/Users/"}) {
    if (!rest.starts_with(root)) continue;
    const size_t end = rest.find_first_of("/\"' \t\n,;:)", root.size());
    const size_t length = std::min(end, rest.size());
    return length > root.size() ? length : 0;
  }
  constexpr std::string_view kRoot = "/root";
  return rest.starts_with(kRoot) && (rest.size() == kRoot.size() || !is_word(rest[kRoot.size()]))
             ? kRoot.size()
             : 0;
}

// Length of what must not be shown at `at`, and what stands for it.
std::pair<size_t, std::string_view> private_part(std::string_view text, size_t at,
                                                 std::string_view home) {
  if (at != 0 && is_word(text[at - 1])) return {0, ""};
  if (home.size() > 1 && text.substr(at).starts_with(home)) {
    const size_t end = at + home.size();
    if (end == text.size() || !is_word(text[end])) return {home.size(), "~"};
  }
  if (const size_t length = user_folder(text, at)) return {length, "~"};
  for (const std::string_view start : kTokenStarts) {
    if (!text.substr(at).starts_with(start)) continue;
    const size_t end = word_end(text, at);
    if (end - at >= start.size() + kTokenLength) return {end - at, "(removed)"};
  }
  return {0, ""};
}

void scrub_json(Json& json, std::string_view home) {
  if (json.is_string()) {
    json = scrub(json.get_ref<const std::string&>(), home);
  } else if (json.is_structured()) {
    for (Json& value : json) scrub_json(value, home);
  }
}

Json facts_json(const ReportFacts& facts) {
  Json json = Json::object();
  for (const auto& [name, value] : facts) json[name] = value;
  return json;
}

std::string line(std::string_view name, std::string_view value) {
  return fmt::format("  {:12} {}\n", name, printable_line(value));
}

// "passed" or what failed, in a few words.
std::string verdict(const Json& verify) {
  if (verify.is_null()) return "not run";
  if (verify.value("passed", false)) return "passed";
  std::string text = "FAILED";
  for (const char* list : {"linear", "inputs", "operations"}) {
    for (const Json& entry : verify.value(list, Json::array())) {
      if (entry.value("failure", Json()).is_string()) {
        text += fmt::format("; {} wrong", entry.value("kernel", ""));
      }
    }
  }
  for (const Json& entry : verify.value("damaged", Json::array())) {
    text += fmt::format("; {} damaged", entry.value("tensor", ""));
  }
  return text;
}

std::string kernels_of(const Json& plan) {
  if (plan.is_null()) return "none";
  std::vector<std::string> names;
  for (const Json& layer : plan.value("linear", Json::array())) {
    const Json kernel = layer.value("kernel", Json());
    const std::string name = kernel.is_string() ? kernel.get<std::string>() : "none";
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

}  // namespace

std::string scrub(std::string_view text, std::string_view home) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const auto [length, replacement] = private_part(text, at, home);
    if (length == 0) {
      out += text[at++];
    } else {
      out += replacement;
      at += length;
    }
  }
  return out;
}

std::string report_text(const Report& report, std::string_view home) {
  std::string head = "Octet report: attach this file to a description of what went wrong\n";
  head += line("octet", report.octet) + line("model", report.model);
  for (const auto& [name, value] : report.facts) head += line(name, value);
  head += line("kernels", kernels_of(report.plan)) + line("verify", verdict(report.verify));
  for (const std::string& problem : report.problems) head += line("problem", problem);
  head = scrub(head, home);
  Json json{{"octet_report", 1}, {"octet", report.octet}, {"model", report.model}};
  json["environment"] = facts_json(report.facts);
  json["environment"]["variables"] = facts_json(report.variables);
  json["probe"] = report.probe;
  json["plan"] = report.plan;
  json["verify"] = report.verify;
  json["problems"] = report.problems;
  scrub_json(json, home);
  return head + "\nno weights, no texts, no secrets; the rest of the file is one JSON object\n" +
         json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace octet
