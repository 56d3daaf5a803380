// Tokenizer, chat templates and token ids of the configs: whether they speak of the same tokens.
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/mapped_file.h"
#include "engine/defaults.h"
#include "evaluate/inspect_parts.h"
#include "io/hub_cache.h"
#include "io/json_file.h"
#include "text/chat_template.h"
#include "text/chat_template_files.h"
#include "text/tokenizer.h"

namespace octet {
namespace {

using Json = nlohmann::json;

constexpr size_t kLongestToken = 64;  // bytes of a control token's name

// The two families of control tokens that templates spell out: <|im_start|>, and with the
// full-width bars of DeepSeek (U+FF5C).
struct Bars {
  std::string_view open, close;
};
constexpr Bars kBars[] = {{"<|", "|>"}, {"<\xEF\xBD\x9C", "\xEF\xBD\x9C>"}};

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= kLongestToken &&
         text.find_first_of(" \t\n\r'\"<>{}|+~()") == std::string_view::npos;
}

// Control tokens written out in the source of a template, each once.
std::set<std::string> control_tokens(std::string_view source) {
  std::set<std::string> tokens;
  for (const Bars& bars : kBars) {
    for (size_t at = source.find(bars.open); at != std::string_view::npos;
         at = source.find(bars.open, at + 1)) {
      const size_t name = at + bars.open.size();
      const size_t end = source.find(bars.close, name);
      if (end == std::string_view::npos) break;
      if (is_name(source.substr(name, end - name)))
        tokens.emplace(source.substr(at, end + bars.close.size() - at));
    }
  }
  return tokens;
}

// Tokens that `text` becomes; 0 when it cannot be encoded.
size_t token_count(const Tokenizer& tokenizer, std::string_view text) {
  try {
    return tokenizer.encode(text, false).size();
  } catch (const Error&) {
    return 0;
  }
}

bool is_one_token(const Tokenizer& tokenizer, std::string_view text) {
  return tokenizer.id_of(text).has_value() || token_count(tokenizer, text) == 1;
}

// Token ids under a key: one, a list, or none.
std::vector<int64_t> ids_at(const Json& config, const char* key) {
  std::vector<int64_t> ids;
  const auto it = config.find(key);
  if (it == config.end()) return ids;
  const auto add = [&](const Json& value) {
    if (value.is_number_integer()) ids.push_back(value.get<int64_t>());
  };
  add(*it);
  if (it->is_array()) std::for_each(it->begin(), it->end(), add);
  return ids;
}

const Json& text_part(const Json& config) {
  const auto it = config.find("text_config");
  return it != config.end() && it->is_object() ? *it : config;
}

class TextRules {
 public:
  TextRules(const Inspected& model, Findings& out) : model_(model), out_(out) {}

  void check() {
    read_tokenizer();
    check_templates();
    const Json& text = text_part(*model_.config);
    const std::vector<int64_t> vocab = ids_at(text, "vocab_size");
    if (!vocab.empty()) vocab_ = vocab.front();
    if (tokenizer_ && vocab_ && tokenizer_->size() > *vocab_) {
      out_.add("id-outside-vocabulary", "tokenizer.json",
               fmt::format("ids below vocab_size, {}", *vocab_),
               fmt::format("ids up to {}", tokenizer_->size() - 1));
    }
    check_ids(text, "config.json");
    check_eos(text);
    for (const char* file : {"config.json", "generation_config.json", "tokenizer_config.json"})
      check_keys(file);
    check_added_tokens();
    if (model_.checkpoint && model_.checkpoint->generation_config() != nullptr) {
      check_generation(*model_.checkpoint->generation_config());
    }
  }

 private:
  bool there(const char* file) const { return is_there(model_.dir / file); }

  // In a hub snapshot the command that fetches a damaged file again belongs to it.
  std::string hint_of(const Error& error) const {
    const std::string files[] = {"tokenizer.json", "tokenizer_config.json",
                                 "special_tokens_map.json", "chat_template.json"};
    return with_refetch(error, model_.dir, files).hint();
  }

  void read_tokenizer() {
    if (!there("tokenizer.json")) {
      out_.add("left-out", "tokenizer.json", "", "not there: templates and ids are not compared");
      return;
    }
    try {
      tokenizer_ = Tokenizer::load(model_.dir);
    } catch (const Error& error) {
      out_.add("tokenizer", "tokenizer.json", "", error.message(), hint_of(error));
    }
  }

  void check_templates() {
    ChatTemplateFiles files;
    try {
      files = read_chat_template_files(model_.dir);
    } catch (const Error& error) {
      out_.add("template", "chat template", "", error.message(), hint_of(error));
      return;
    }
    for (const auto& [name, source] : files.templates) check_template(name, source, files);
    if (!tokenizer_) return;
    for (const auto& [name, value] : files.special_tokens.items()) {
      if (value.is_string()) check_special(name, value.get<std::string>());
      if (!value.is_array()) continue;
      for (const auto& token : value) {
        if (token.is_string()) check_special(name, token.get<std::string>());
      }
    }
  }

  void check_template(const std::string& name, const std::string& source,
                      const ChatTemplateFiles& files) {
    const std::string subject = fmt::format("chat template \"{}\"", name);
    try {
      ChatTemplate::from_source(source, files.special_tokens, name, files.places.at(name));
      if (name == "default") check_rendering(subject, source, files);
    } catch (const Error& error) {
      out_.add("template", subject, "", error.message(), error.hint());
    }
    if (!tokenizer_) return;
    for (const std::string& token : control_tokens(source)) {
      if (is_one_token(*tokenizer_, token)) continue;
      out_.add("template-token", subject, fmt::format("\"{}\" as one token", token),
               fmt::format("{} tokens", token_count(*tokenizer_, token)),
               "the model does not know the turn by these: template and tokenizer are of two "
               "models");
    }
  }

  void check_rendering(const std::string& subject, const std::string& source,
                       const ChatTemplateFiles& files) {
    constexpr std::string_view kHint = "octet run --chat and octet chat cannot use it";
    try {
      ChatInput input;
      input.messages.push_back({{"role", "user"}, {"content", "Hello"}});
      const ChatTemplate made = ChatTemplate::from_source(source, files.special_tokens, "default",
                                                          files.places.at("default"));
      if (!made.render(input).empty()) return;
      out_.add("template-fails", subject, "a prompt for the message \"Hello\"", "no text at all",
               std::string(kHint));
    } catch (const Error& error) {
      out_.add("template-fails", subject, "a prompt for the message \"Hello\"", error.message(),
               std::string(kHint));
    }
  }

  // Of the objects of a config file.
  void check_keys(const char* file) {
    if (!there(file)) return;
    try {
      for (const std::string& place : duplicate_keys(model_.dir / file)) {
        out_.add("duplicate-key", fmt::format("{} {}", file, place), "the key once", "it twice",
                 "octet takes the last");
      }
    } catch (const Error&) {
      return;  // reading the file for its meaning has said it
    }
  }

  void check_added_tokens() {
    if (!tokenizer_ || !there("tokenizer_config.json")) return;
    Json config;
    try {
      config = read_json_object(model_.dir / "tokenizer_config.json");
    } catch (const Error& error) {
      out_.add("left-out", "tokenizer_config.json", "", error.message(), error.hint());
      return;
    }
    const auto added = config.find("added_tokens_decoder");
    if (added == config.end() || !added->is_object()) return;
    for (const auto& [key, token] : added->items()) {
      const auto text = token.is_object() ? token.find("content") : token.end();
      int32_t id = -1;
      const auto read = std::from_chars(key.data(), key.data() + key.size(), id);
      const bool number = read.ec == std::errc{} && read.ptr == key.data() + key.size() && id >= 0;
      if (!number || text == token.end() || !text->is_string()) continue;
      const std::string& expected = text->get_ref<const std::string&>();
      if (tokenizer_->id_of(expected) == id) continue;
      const bool known = id < tokenizer_->size();
      const std::string_view got = known ? tokenizer_->token_bytes(id) : std::string_view();
      if (got == expected) continue;
      out_.add("added-token", fmt::format("tokenizer_config.json /added_tokens_decoder/{}", key),
               fmt::format("\"{}\" in tokenizer.json", expected),
               got.empty() ? std::string("no such token") : fmt::format("\"{}\"", got),
               "the files are of two models, or one was edited; octet goes by tokenizer.json");
    }
  }

  // The ends that each config names against the token that tokenizer_config.json names.
  void check_eos(const Json& config) {
    const std::optional<int32_t> eos = tokenizer_ ? tokenizer_->eos() : std::nullopt;
    if (!eos) return;
    std::vector<int64_t> ids[2] = {ids_at(config, "eos_token_id"), {}};
    if (model_.checkpoint && model_.checkpoint->generation_config() != nullptr)
      ids[1] = ids_at(*model_.checkpoint->generation_config(), "eos_token_id");
    const auto has = [](const std::vector<int64_t>& list, int64_t id) {
      return std::find(list.begin(), list.end(), id) != list.end();
    };
    const bool shared =
        std::any_of(ids[0].begin(), ids[0].end(), [&](int64_t id) { return has(ids[1], id); });
    const bool known = has(ids[0], *eos) || has(ids[1], *eos);
    constexpr const char* kFiles[] = {"config.json", "generation_config.json"};
    for (size_t i = 0; i < 2; ++i) {
      if (ids[i].empty() || has(ids[i], *eos) || (shared && known)) continue;
      out_.add("eos-disagrees", fmt::format("{} /eos_token_id", kFiles[i]),
               fmt::format("{}, \"{}\" of the tokenizer", *eos, tokenizer_->token_bytes(*eos)),
               fmt::format("{}", fmt::join(ids[i], ", ")),
               "octet ends an answer at any of them; other programs may go on after the end");
    }
  }

  void check_special(const std::string& name, const std::string& token) {
    if (token.empty() || tokenizer_->id_of(token)) return;
    out_.add("special-token", fmt::format("tokenizer_config.json /{}", name),
             fmt::format("\"{}\" in tokenizer.json", token), "no such token");
  }

  void check_ids(const Json& config, const std::string& file) {
    for (const char* key : {"bos_token_id", "eos_token_id", "pad_token_id"}) {
      for (const int64_t id : ids_at(config, key)) check_id(id, fmt::format("{} /{}", file, key));
    }
  }

  void check_id(int64_t id, std::string subject) {
    if (id < 0 && subject.ends_with("pad_token_id")) return;  // how some writers say none
    if (id < 0 || (vocab_ && id >= *vocab_)) {
      out_.add("id-outside-vocabulary", std::move(subject),
               vocab_ ? fmt::format("0 to {}", *vocab_ - 1) : std::string("an id from 0 on"),
               fmt::format("{}", id), "it ends no answer");
      return;
    }
    if (!tokenizer_ ||
        (id < tokenizer_->size() && !tokenizer_->token_bytes(static_cast<int32_t>(id)).empty()))
      return;
    out_.add("id-not-a-token", std::move(subject), "the id of a token", fmt::format("{}", id));
  }

  void check_generation(const Json& generation) {
    check_ids(generation, "generation_config.json");
    try {
      generation_defaults(&generation, {}, vocab_.value_or(INT32_MAX));
    } catch (const Error& error) {
      out_.add("generation-config", "generation_config.json", "", error.message(), error.hint());
    }
  }

  const Inspected& model_;
  Findings& out_;
  std::optional<Tokenizer> tokenizer_;
  std::optional<int64_t> vocab_;
};

}  // namespace

void inspect_text(const Inspected& model, Findings& out) {
  TextRules(model, out).check();
}

}  // namespace octet
