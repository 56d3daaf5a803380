#pragma once
// Conversations to prompts, by the Jinja template that comes with a checkpoint. Templates are
// untrusted: they run in the interpreter of jinja_template.h, under its limits.
#include <ctime>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace octet {

namespace jinja {
class Template;
}

// What one prompt is made of. JSON objects keep the order of their keys: templates print tools as
// they are given.
struct ChatInput {
  nlohmann::ordered_json messages = nlohmann::ordered_json::array();  // of objects
  nlohmann::ordered_json tools;                                       // an array; null: no tools
  nlohmann::ordered_json documents;                                   // an array; null: none
  bool add_generation_prompt = true;  // end with the header of the assistant's turn
  // Further variables of the template, such as enable_thinking. They may replace special tokens,
  // not the four fields above.
  nlohmann::ordered_json variables = nlohmann::ordered_json::object();
  std::function<std::tm()> clock;  // what strftime_now shows; empty: the local time
};

// The chat template of a checkpoint, compiled. Copies are cheap and share it; rendering is
// thread-safe.
class ChatTemplate {
 public:
  // Reads the template named `name` of a checkpoint folder, where transformers looks: the file
  // chat_template.jinja (the default one) and additional_chat_templates/NAME.jinja; else
  // "chat_template" of tokenizer_config.json, one template or a list of {"name", "template"}; else
  // chat_template.json. When the default is asked for and one named "tool_use" exists,
  // conversations with tools take that. Special tokens come from tokenizer_config.json, missing
  // ones from special_tokens_map.json. nullopt when the folder has no template at all. Throws
  // Error{BadInput} when it has some and none of that name, and for files and templates that cannot
  // be parsed.
  static std::optional<ChatTemplate> load(const std::filesystem::path& folder,
                                          std::string_view name = "default");

  // Compiles `source`. `special_tokens` is an object such as {"bos_token": "<s>"}; `file`, where
  // the source comes from, stands in messages. Throws Error{BadInput} with the line of the
  // template.
  static ChatTemplate from_source(
      std::string_view source,
      nlohmann::ordered_json special_tokens = nlohmann::ordered_json::object(),
      const std::string& name = "default", const std::string& file = {});

  // The prompt. Throws Error{BadInput}: the template's own words for raise_exception, else what
  // went wrong with the template's name and line, or the JSON pointer of an input that cannot be
  // used.
  std::string render(const ChatInput& input) const;

  // Whether a text stands in the template's source (in that for tools, too).
  bool spells(std::string_view text) const;

  // Variables that stand for special tokens: "bos_token" and its like, each a string, and
  // "additional_special_tokens", a list of them.
  const nlohmann::ordered_json& special_tokens() const { return special_tokens_; }

 private:
  ChatTemplate() = default;

  std::shared_ptr<const jinja::Template> template_;
  std::shared_ptr<const jinja::Template>
      tool_template_;  // for conversations with tools; may be null
  nlohmann::ordered_json special_tokens_;
  std::shared_ptr<const std::string> sources_;
};

}  // namespace octet
