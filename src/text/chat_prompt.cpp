#include "text/chat_prompt.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/printable.h"
#include "text/text_replace.h"
#include "text/tokenizer_added.h"
#include "text/unicode.h"
#include "text/utf8.h"

namespace octet {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kWhiteSpace = " \t\r\n\v\f";

// Calls `visit` with every string that a client gave: values, not keys, and not the roles, which
// templates build turns of.
template <class Visit>
void for_each_text(Json& value, const Visit& visit) {
  if (value.is_string()) return visit(value.get_ref<std::string&>());
  if (value.is_structured()) {
    for (Json& item : value) for_each_text(item, visit);
  }
}

template <class Visit>
void for_each_text(ChatInput& input, const Visit& visit) {
  for (Json& message : input.messages) {
    for (auto field = message.begin(); field != message.end(); ++field) {
      if (field.key() != "role") for_each_text(field.value(), visit);
    }
  }
  for_each_text(input.tools, visit);
  for_each_text(input.documents, visit);
}

// Finds the places of texts where one of a set of tokens begins, or may do so once other text
// follows: the end of a text, white space aside since templates trim, is a part of it.
class TokenStarts {
 public:
  explicit TokenStarts(const std::vector<const AddedToken*>& tokens) {
    for (const AddedToken* token : tokens) byte_of(token->content[0]).push_back(token);
  }

  // Calls `found(at, token)` for every place and every token that begins there.
  template <class Found>
  void find(std::string_view text, const Found& found) const {
    const size_t trimmed_end = text.find_last_not_of(kWhiteSpace) + 1;  // npos + 1 is 0
    for (size_t at = 0; at < text.size(); ++at) {
      for (const AddedToken* token : by_byte_[static_cast<uint8_t>(text[at])]) {
        const std::string_view rest = text.substr(at);
        const std::string_view trimmed = rest.substr(0, trimmed_end > at ? trimmed_end - at : 0);
        const std::string_view content = token->content;
        if (rest.starts_with(content) || content.starts_with(rest) ||
            (!trimmed.empty() && content.starts_with(trimmed)))
          found(at, token);
      }
    }
  }

 private:
  std::vector<const AddedToken*>& byte_of(char byte) {
    return by_byte_[static_cast<uint8_t>(byte)];
  }

  std::array<std::vector<const AddedToken*>, 256> by_byte_;
};

// Puts `guard` behind the first character of every place where a token begins.
void guard_text(std::string& text, const TokenStarts& starts, std::string_view guard) {
  std::string guarded;
  size_t done = 0;
  starts.find(text, [&](size_t at, const AddedToken*) {
    const size_t behind = at + code_point_at(text, at).bytes;
    if (behind <= done) return;  // another token begins there too
    guarded.append(text, done, behind - done).append(guard);
    done = behind;
  });
  if (done > 0) text = guarded.append(text, done);
}

bool is_white(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = code_point_at(text, at);
    if (!is_white_space(c.value)) return false;
    at += c.bytes;
  }
  return true;
}

// A prompt in the making: the conversation, and its text without guards.
class GuardedPrompt {
 public:
  GuardedPrompt(const ChatTemplate& chat, const Tokenizer& tokenizer, ChatInput& input)
      : chat_(chat), input_(input), text_(chat.render(input)) {
    std::vector<const AddedToken*> control;
    for (const AddedToken& token : tokenizer.added_tokens()) {
      if (token.special || (!is_white(token.content) && chat.spells(token.content)))
        control.push_back(&token);
    }
    const TokenStarts starts(control);
    for_each_text(input_, [&](const std::string& text) {
      starts.find(text, [&](size_t, const AddedToken* token) {
        if (std::find(tokens_.begin(), tokens_.end(), token) == tokens_.end())
          tokens_.push_back(token);
      });
    });
  }

  std::vector<int32_t> encode(const Tokenizer& tokenizer) {
    if (tokens_.empty()) return tokenizer.encode(text_, false);
    choose_guard();
    std::string guarded = render(tokens_);
    if (!same(guarded)) guarded = render(undisturbing());
    check_escapes(guarded);
    return tokenizer.encode_guarded(guarded, guard_);
  }

 private:
  // The first noncharacter that stands nowhere.
  void choose_guard() {
    for (uint32_t value = 0xFDD0; value <= 0xFDEF; ++value) {
      guard_.clear();
      append_utf8(guard_, value);
      escaped_ = fmt::format("\\u{:04x}", value);
      bool used = text_.find(guard_) != std::string::npos;
      for_each_text(input_, [&](const std::string& text) {
        used = used || text.find(guard_) != std::string::npos;
      });
      if (!used) return;
    }
    throw_error(Code::BadInput, "the conversation holds every noncharacter from U+FDD0 to U+FDEF",
                "take them out; they are not meant for texts");
  }

  std::string render(const std::vector<const AddedToken*>& tokens) const {
    ChatInput guarded = input_;
    const TokenStarts starts(tokens);
    for_each_text(guarded, [&](std::string& text) { guard_text(text, starts, guard_); });
    return chat_.render(guarded);
  }

  // Whether guards alone make the difference to the text without them.
  bool same(std::string_view guarded) const { return replace_all(guarded, guard_, "") == text_; }

  // The special tokens, and of the others those that the template does not look for.
  std::vector<const AddedToken*> undisturbing() const {
    std::vector<const AddedToken*> kept;
    std::copy_if(tokens_.begin(), tokens_.end(), std::back_inserter(kept),
                 [&](const AddedToken* token) { return token->special || same(render({token})); });
    return kept;
  }

  // A template that writes texts in ASCII, or as Python prints them inside of lists, spells guards
  // out.
  void check_escapes(std::string_view guarded) const {
    if (guarded.find(escaped_) == std::string_view::npos ||
        text_.find(escaped_) != std::string::npos)
      return;
    throw_error(Code::BadInput,
                fmt::format("the conversation spells the control token \"{}\" in a text that the "
                            "chat template writes escaped",
                            printable(tokens_[0]->content)),
                "take it out of the text");
  }

  const ChatTemplate& chat_;
  ChatInput& input_;
  std::string text_;
  std::vector<const AddedToken*> tokens_;  // control tokens that the conversation spells
  std::string guard_, escaped_;
};

[[noreturn]] void refuse_part(size_t message, size_t part, const Json& got) {
  const std::string type = got.is_object() && got.contains("type") && got["type"].is_string()
                               ? got["type"].get<std::string>()
                               : std::string(got.type_name());
  throw_error(Code::BadInput,
              fmt::format("/messages/{}/content/{}: expected a part of type \"text\" with a string "
                          "\"text\", got \"{}\"",
                          message, part, printable(type)),
              "octet reads texts only, no images or sound");
}

}  // namespace

void join_text_parts(Json& messages) {
  for (size_t i = 0; messages.is_array() && i < messages.size(); ++i) {
    Json& message = messages[i];
    if (!message.is_object() || !message.contains("content") || !message["content"].is_array())
      continue;
    std::optional<std::string> joined;
    const Json& parts = message["content"];
    for (size_t part = 0; part < parts.size(); ++part) {
      const Json& given = parts[part];
      const auto has_text = [&](const char* key) {
        return given.is_object() && given.contains(key) && given[key].is_string();
      };
      if (!has_text("type") || given["type"] != "text" || !has_text("text"))
        refuse_part(i, part, given);
      const auto& text = given["text"].get_ref<const std::string&>();
      joined = joined ? *joined + "\n" + text : text;
    }
    message["content"] = joined.value_or("");
  }
}

std::vector<int32_t> encode_chat(const ChatTemplate& chat, const Tokenizer& tokenizer,
                                 const ChatInput& input) {
  ChatInput given = input;
  join_text_parts(given.messages);
  std::vector<int32_t> ids = GuardedPrompt(chat, tokenizer, given).encode(tokenizer);
  if (ids.empty()) {
    throw_error(Code::BadInput, "the chat template makes no text of the conversation",
                "octet inspect checks the template; octet run without --chat needs none");
  }
  return ids;
}

}  // namespace octet
