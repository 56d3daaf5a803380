#pragma once
// The chat templates and special tokens that a checkpoint folder holds, as its files spell them.
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

namespace octet {

struct ChatTemplateFiles {
  std::map<std::string, std::string> templates;  // source by name; the usual one is "default"
  // Where each comes from, by the same names: "chat_template.jinja", "tokenizer_config.json:
  // /chat_template".
  std::map<std::string, std::string> places;
  nlohmann::ordered_json special_tokens = nlohmann::ordered_json::object();
};

// Reads them; absent files are no error. Throws Error{BadInput} naming the file and the JSON
// pointer of what is not as expected, Error{Environment} for a file that cannot be read.
ChatTemplateFiles read_chat_template_files(const std::filesystem::path& folder);

}  // namespace octet
