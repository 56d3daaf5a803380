#pragma once
// What a report for a bug holds, and what it must not: names of folders under the home folder, and
// words that look like access tokens.
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace octet {

// Facts about the machine and the program, in the order of the report.
using ReportFacts = std::vector<std::pair<std::string, std::string>>;

struct Report {
  std::string octet;                  // version
  std::string model;                  // name of its folder
  ReportFacts facts;                  // "os", "cpu", ...
  ReportFacts variables;              // of the environment, by name
  nlohmann::ordered_json probe;       // octet probe --json
  nlohmann::ordered_json plan;        // octet plan --json, or null
  nlohmann::ordered_json verify;      // octet verify --json, or null
  std::vector<std::string> problems;  // messages of what could not be done
};

// `text` without private parts: `home` and the folders of users (/home/NAME, /Users/NAME, /root)
// become "~", words such as "hf_..." become "(removed)".
std::string scrub(std::string_view text, std::string_view home);

// The whole file: lines for a person, then one JSON object. Every text in it is scrubbed.
std::string report_text(const Report& report, std::string_view home);

}  // namespace octet
