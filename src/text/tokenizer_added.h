#pragma once
// The added tokens of a tokenizer: texts that become one token before anything else is done with
// the text around them.
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/pre_tokenizer_pattern.h"

namespace octet {

// One entry of "added_tokens" in tokenizer.json.
struct AddedToken {
  int32_t id = -1;
  std::string content;
  bool single_word = false;  // only where no word character touches it
  bool lstrip = false;       // takes the white space before it with it
  bool rstrip = false;       // takes the white space behind it with it
  bool normalized = true;    // looked for in the normalized text rather than in the text as given
  bool special = false;      // left out of decoded text on request

  bool operator==(const AddedToken&) const = default;
};

// A part of a text: plain text (id -1), or an added token with the white space it takes.
struct TextPart {
  std::string_view text;
  int32_t id;
};

// Finds a set of added tokens in texts: leftmost first, the longest of those that begin at one
// place, never overlapping (Hugging Face tokenizers, tokenizer/added_vocabulary). Immutable; any
// number of threads may split.
class AddedTokenFinder {
 public:
  // Finds nothing.
  AddedTokenFinder() = default;
  // Finds `tokens[i].content`. Throws BadInput when a content is empty or appears twice.
  explicit AddedTokenFinder(std::vector<AddedToken> tokens);

  // Appends the parts of `text` in order; they point into it. Requires well-formed UTF-8.
  void split(std::string_view text, std::vector<TextPart>& parts) const;

 private:
  const AddedToken* longest_at(std::string_view text, size_t at) const;
  bool stands_alone(std::string_view text, size_t begin, size_t end) const;

  std::vector<AddedToken> tokens_;     // by content
  std::array<uint32_t, 257> first_{};  // [byte] first token that begins with it or a greater byte
  std::unique_ptr<Pattern> word_character_;  // set if any token is single_word
};

}  // namespace octet
