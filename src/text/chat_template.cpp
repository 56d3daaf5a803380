#include "text/chat_template.h"

#include "text/chat_template_files.h"
#include "text/jinja_print.h"
#include "text/jinja_template.h"

namespace octet {
namespace {

using Json = nlohmann::ordered_json;

std::tm local_time() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  return local;
}

void expect_array(const Json& json, std::string_view what, bool of_objects) {
  if (!json.is_array()) {
    throw_error(Code::BadInput,
                fmt::format("/{}: expected an array, got {}", what, json.type_name()));
  }
  for (size_t i = 0; i < json.size(); ++i) {
    if (of_objects && !json[i].is_object()) {
      throw_error(Code::BadInput,
                  fmt::format("/{}/{}: expected an object, got {}", what, i, json[i].type_name()));
    }
  }
}

void check(const ChatInput& input) {
  expect_array(input.messages, "messages", true);
  if (!input.tools.is_null()) expect_array(input.tools, "tools", false);
  if (!input.documents.is_null()) expect_array(input.documents, "documents", false);
  if (!input.variables.is_object()) {
    throw_error(Code::BadInput, fmt::format("the template's variables: expected an object, got {}",
                                            input.variables.type_name()));
  }
  for (const std::string_view name : {"messages", "tools", "documents", "add_generation_prompt"}) {
    if (input.variables.contains(name)) {
      throw_error(Code::BadInput,
                  fmt::format("the variable '{}' is set by the conversation itself", name),
                  "leave it out of the template's further variables");
    }
  }
}

jinja::Value variables_of(const ChatInput& input, const Json& special_tokens) {
  jinja::Budget budget{jinja::Limits{}};
  jinja::DictBuilder variables(budget);
  for (const Json* object : {&special_tokens, &input.variables}) {
    for (const auto& [name, value] : object->items()) {
      variables.set(name, jinja::from_json(value, "/" + name, budget));
    }
  }
  variables.set("messages", jinja::from_json(input.messages, "/messages", budget));
  variables.set("tools", jinja::from_json(input.tools, "/tools", budget));
  variables.set("documents", jinja::from_json(input.documents, "/documents", budget));
  variables.set("add_generation_prompt", jinja::Value::boolean(input.add_generation_prompt));
  return variables.take();
}

constexpr std::string_view kFilesHint =
    "chat_template.jinja and tokenizer_config.json must be as transformers saves them; octet run "
    "without --chat needs neither";

ChatTemplateFiles files_of(const std::filesystem::path& folder) {
  try {
    return read_chat_template_files(folder);
  } catch (const Error& error) {
    throw error.or_hint(kFilesHint);
  }
}

}  // namespace

ChatTemplate ChatTemplate::from_source(std::string_view source, Json special_tokens,
                                       const std::string& name, const std::string& file) {
  ChatTemplate made;
  made.template_ = std::make_shared<const jinja::Template>(source, name, file);
  made.special_tokens_ = std::move(special_tokens);
  made.sources_ = std::make_shared<const std::string>(source);
  return made;
}

std::optional<ChatTemplate> ChatTemplate::load(const std::filesystem::path& folder,
                                               std::string_view name) {
  const ChatTemplateFiles files = files_of(folder);
  if (files.templates.empty()) return std::nullopt;
  const auto found = files.templates.find(std::string(name));
  if (found == files.templates.end()) {
    std::vector<std::string> names;
    for (const auto& [known, source] : files.templates) names.push_back(known);
    throw_error(Code::BadInput,
                fmt::format("{}: no chat template is named '{}'; there are: {}", folder.string(),
                            name, fmt::join(names, ", ")),
                "rename the one to be used to chat_template.jinja; octet run without --chat needs "
                "none");
  }
  try {
    ChatTemplate made = from_source(found->second, files.special_tokens, found->first,
                                    files.places.at(found->first));
    const auto tool_use = files.templates.find("tool_use");
    if (name == "default" && tool_use != files.templates.end()) {
      made.tool_template_ = std::make_shared<const jinja::Template>(tool_use->second, "tool_use",
                                                                    files.places.at("tool_use"));
      made.sources_ = std::make_shared<const std::string>(found->second + "\n" + tool_use->second);
    }
    return made;
  } catch (const Error& error) {
    throw error.with(folder.string()).or_hint(kFilesHint);
  }
}

bool ChatTemplate::spells(std::string_view text) const {
  return sources_->find(text) != std::string::npos;
}

std::string ChatTemplate::render(const ChatInput& input) const {
  check(input);
  const bool with_tools = tool_template_ && !input.tools.is_null();
  const jinja::Template& used = with_tools ? *tool_template_ : *template_;
  try {
    return used.render(variables_of(input, special_tokens_),
                       input.clock ? input.clock : jinja::Clock(local_time));
  } catch (const Error& error) {
    throw error.or_hint(
        "the template refuses this conversation or has a fault: octet inspect tries it with one "
        "message; octet run without --chat needs none");
  }
}

}  // namespace octet
