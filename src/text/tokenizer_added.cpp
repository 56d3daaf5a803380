#include "text/tokenizer_added.h"

#include <algorithm>

#include "base/error.h"
#include "text/unicode.h"
#include "text/utf8.h"

namespace octet {
namespace {

size_t white_space_before(std::string_view text, size_t end) {
  while (end > 0) {
    const CodePoint c = code_point_before(text, end);
    if (!is_white_space(c.value)) break;
    end -= c.bytes;
  }
  return end;
}

size_t white_space_behind(std::string_view text, size_t at) {
  while (at < text.size()) {
    const CodePoint c = code_point_at(text, at);
    if (!is_white_space(c.value)) break;
    at += c.bytes;
  }
  return at;
}

}  // namespace

AddedTokenFinder::AddedTokenFinder(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)) {
  std::sort(tokens_.begin(), tokens_.end(),
            [](const AddedToken& a, const AddedToken& b) { return a.content < b.content; });
  for (size_t i = 0; i < tokens_.size(); ++i) {
    const AddedToken& token = tokens_[i];
    if (token.content.empty())
      throw_error(Code::BadInput, fmt::format("added token {} has no text", token.id));
    if (i > 0 && tokens_[i - 1].content == token.content) {
      throw_error(Code::BadInput,
                  fmt::format("the added tokens {} and {} have the same text \"{}\"",
                              tokens_[i - 1].id, token.id, token.content));
    }
    ++first_[static_cast<uint8_t>(token.content[0]) + 1U];
    if (token.single_word && word_character_ == nullptr) {
      // \w of Rust's regex crate (Unicode TR18 annex C)
      word_character_ = std::make_unique<Pattern>(
          Pattern::regex("\\A[\\p{Alphabetic}\\p{L}\\p{M}\\p{Nd}\\p{Pc}\\p{Join_Control}]"));
    }
  }
  for (size_t byte = 1; byte < first_.size(); ++byte) first_[byte] += first_[byte - 1];
}

void AddedTokenFinder::split(std::string_view text, std::vector<TextPart>& parts) const {
  size_t done = 0;  // text before it is in parts
  for (size_t at = 0; at < text.size() && !tokens_.empty();) {
    const auto byte = static_cast<uint8_t>(text[at]);
    const AddedToken* token = first_[byte] == first_[byte + 1U] ? nullptr : longest_at(text, at);
    if (token == nullptr) {
      ++at;
      continue;
    }
    size_t begin = at;
    size_t end = at + token->content.size();
    at = end;  // the search goes on here even if white space further on is taken, as in the
               // reference
    if (token->single_word && !stands_alone(text, begin, end)) continue;
    if (token->lstrip) begin = std::max(white_space_before(text, begin), done);
    if (token->rstrip) end = white_space_behind(text, end);
    if (done < begin) parts.push_back({text.substr(done, begin - done), -1});
    parts.push_back({text.substr(begin, end - begin), token->id});
    done = end;
  }
  if (done < text.size()) parts.push_back({text.substr(done), -1});
}

// Narrows the sorted tokens down to those that share one more byte with the text, until none is
// left.
const AddedToken* AddedTokenFinder::longest_at(std::string_view text, size_t at) const {
  const auto byte = static_cast<uint8_t>(text[at]);
  auto low = tokens_.begin() + first_[byte];
  auto high = tokens_.begin() + first_[byte + 1U];
  const AddedToken* longest = nullptr;
  for (size_t length = 1; low != high; ++length) {
    if (low->content.size() == length) longest = &*low++;
    if (at + length >= text.size()) break;
    const char next = text[at + length];
    const auto byte_at = [&](const AddedToken& token) {
      return static_cast<uint8_t>(token.content[length]);
    };
    low = std::partition_point(
        low, high, [&](const AddedToken& t) { return byte_at(t) < static_cast<uint8_t>(next); });
    high = std::partition_point(
        low, high, [&](const AddedToken& t) { return byte_at(t) == static_cast<uint8_t>(next); });
  }
  return longest;
}

bool AddedTokenFinder::stands_alone(std::string_view text, size_t begin, size_t end) const {
  Pattern::Searcher searcher(*word_character_);
  const auto is_word = [&](std::string_view character) {
    searcher.start(character);
    return searcher.next().has_value();
  };
  if (begin > 0) {
    const uint32_t bytes = code_point_before(text, begin).bytes;
    if (is_word(text.substr(begin - bytes, bytes))) return false;
  }
  return end == text.size() || !is_word(text.substr(end, code_point_at(text, end).bytes));
}

}  // namespace octet
