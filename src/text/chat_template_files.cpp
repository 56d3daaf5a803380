#include "text/chat_template_files.h"

#include <optional>
#include <string_view>

#include "base/error.h"
#include "base/mapped_file.h"
#include "base/printable.h"

namespace octet {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr uintmax_t kMaxFileBytes = 64u
                                    << 20;  // configs of published tokenizers have up to a few MB

std::optional<std::string> read_file(const fs::path& path) {
  if (!is_there(path)) return std::nullopt;
  return read_text_file(path, kMaxFileBytes);
}

// The JSON object in a file; an empty one when the file is absent.
Json read_object(const fs::path& path) {
  const auto text = read_file(path);
  if (!text) return Json::object();
  Json json;
  try {
    json = Json::parse(*text);
  } catch (const Json::exception& e) {
    // "[json.exception.parse_error.101] parse error at line ...": the bracket says nothing here.
    std::string_view what = e.what();
    if (const size_t end = what.find("] "); end != std::string_view::npos)
      what.remove_prefix(end + 2);
    throw_error(Code::BadInput,
                fmt::format("{} is not JSON: {}", path.string(), printable_name(what)));
  }
  if (!json.is_object()) {
    throw_error(Code::BadInput,
                fmt::format("{}: expected an object, got {}", path.string(), json.type_name()));
  }
  return json;
}

void add_template(ChatTemplateFiles& files, const std::string& name, std::string source,
                  std::string place) {
  files.templates[name] = std::move(source);
  files.places[name] = std::move(place);
}

// A token is a string or an object with its "content"; null means there is none.
std::optional<std::string> token_text(const Json& token, const std::string& where) {
  if (token.is_null()) return std::nullopt;
  if (token.is_string()) return token.get<std::string>();
  if (token.is_object() && token.contains("content") && token["content"].is_string()) {
    return token["content"].get<std::string>();
  }
  throw_error(Code::BadInput,
              fmt::format("{}: expected a string or an object with \"content\", got {}", where,
                          token.type_name()));
}

void read_special_tokens(const Json& config, const fs::path& path, Json& tokens) {
  for (const char* name : {"bos_token", "eos_token", "unk_token", "sep_token", "pad_token",
                           "cls_token", "mask_token"}) {
    if (tokens.contains(name) || !config.contains(name)) continue;
    const auto text = token_text(config[name], fmt::format("{}: /{}", path.string(), name));
    if (text) tokens[name] = *text;
  }
  const char* list_name = "additional_special_tokens";
  if (tokens.contains(list_name) || !config.contains(list_name)) return;
  const Json& list = config[list_name];
  if (!list.is_array()) return;  // null, or a form that no template uses
  Json texts = Json::array();
  for (size_t i = 0; i < list.size(); ++i) {
    const auto text = token_text(list[i], fmt::format("{}: /{}/{}", path.string(), list_name, i));
    if (text) texts.push_back(*text);
  }
  if (!texts.empty()) tokens[list_name] = std::move(texts);
}

void read_config_templates(const Json& config, const fs::path& path, ChatTemplateFiles& files) {
  if (!config.contains("chat_template") || config["chat_template"].is_null()) return;
  const Json& value = config["chat_template"];
  const std::string place = path.filename().string() + ": /chat_template";
  const std::string where = path.string() + ": /chat_template";
  if (value.is_string()) {
    add_template(files, "default", value.get<std::string>(), place);
    return;
  }
  if (!value.is_array()) {
    throw_error(Code::BadInput,
                fmt::format("{}: expected a string or a list of named templates, got {}", where,
                            value.type_name()));
  }
  for (size_t i = 0; i < value.size(); ++i) {
    const Json& item = value[i];
    const auto has_text = [&](const char* key) {
      return item.is_object() && item.contains(key) && item[key].is_string();
    };
    if (!has_text("name") || !has_text("template")) {
      throw_error(
          Code::BadInput,
          fmt::format(
              "{}/{}: expected an object with the strings \"name\" and \"template\", got {}", where,
              i,
              !item.is_object()
                  ? item.type_name()
                  : fmt::format("no such \"{}\"", has_text("name") ? "template" : "name")));
    }
    add_template(files, item["name"].get<std::string>(), item["template"].get<std::string>(),
                 fmt::format("{}/{}", place, i));
  }
}

void read_template_files(const fs::path& folder, ChatTemplateFiles& files) {
  if (auto source = read_file(folder / "chat_template.jinja")) {
    add_template(files, "default", std::move(*source), "chat_template.jinja");
  }
  std::error_code error;
  const fs::path more = folder / "additional_chat_templates";
  for (fs::directory_iterator it(more, error), end; !error && it != end; it.increment(error)) {
    if (it->path().extension() != ".jinja") continue;
    if (auto source = read_file(it->path())) {
      add_template(files, it->path().stem().string(), std::move(*source),
                   "additional_chat_templates/" + it->path().filename().string());
    }
  }
  if (error && is_there(more)) {
    throw_error(Code::Environment,
                fmt::format("cannot list folder {}: {}", more.string(), error.message()),
                "check what it is and its permissions, or remove it");
  }
}

}  // namespace

ChatTemplateFiles read_chat_template_files(const fs::path& folder) {
  ChatTemplateFiles files;
  const fs::path config_path = folder / "tokenizer_config.json";
  const Json config = read_object(config_path);
  read_special_tokens(config, config_path, files.special_tokens);
  const fs::path map_path = folder / "special_tokens_map.json";
  read_special_tokens(read_object(map_path), map_path, files.special_tokens);
  read_template_files(folder, files);
  if (files.templates.empty()) read_config_templates(config, config_path, files);
  const fs::path legacy_path = folder / "chat_template.json";
  if (files.templates.empty()) read_config_templates(read_object(legacy_path), legacy_path, files);
  return files;
}

}  // namespace octet
