#pragma once
// Text that comes out of a model token by token: whole characters only, and stop strings that may
// lie across tokens.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"
#include "text/utf8.h"

namespace octet {

// Turns a stream of ids into text, as the tokenizer's decoder says. All pieces joined, with the
// flush, equal Tokenizer::decode of all ids. Bytes that are not UTF-8 give one U+FFFD for each
// maximal ill-formed part. (The reference does so for byte-level tokenizers; of the byte tokens of
// others it takes a run whole, and one bad byte spoils the characters before it, which a stream has
// sent by then.)
class Detokenizer {
 public:
  // The tokenizer must outlive the detokenizer.
  Detokenizer(const Tokenizer& tokenizer, bool skip_special_tokens);

  // The characters that this token completes; often none. Bytes that can become no character give
  // U+FFFD at once.
  std::string push(int32_t id);
  // Ends the stream: an unfinished character becomes one U+FFFD.
  std::string flush();
  // The same, appended to a text.
  void push(int32_t id, std::string& text);
  void flush(std::string& text);
  // Whether a character is unfinished.
  bool pending() const { return characters_.pending() > 0; }

 private:
  void strip_from(size_t begin, std::string& text);

  const Tokenizer* tokenizer_;
  bool skip_special_;
  bool first_ = true;                // no token came yet
  std::vector<size_t> strips_left_;  // characters that each strip of the decoder may still drop
  LossyUtf8 characters_;
};

// Finds the end of an answer that stop strings set. It keeps back only text that may turn out to
// begin one, so without a near match every piece leaves as it comes. The result does not depend on
// how the text is cut into pieces: the stop string that is complete first wins, of those complete
// at the same byte the longest.
class StopScanner {
 public:
  // Throws BadInput if a stop string is empty.
  explicit StopScanner(std::vector<std::string> stops);

  // The text that may leave after `piece`; once stopped, none ever again.
  std::string push(std::string_view piece);
  // Ends the stream: what was kept back.
  std::string flush();
  // Which stop string was found, as an index of the list; nullopt while none was. It and all behind
  // it is dropped.
  std::optional<size_t> stopped() const { return hit_; }

 private:
  struct Stop {
    std::string text;
    std::vector<uint32_t> border;  // [n] longest proper prefix of text that also ends text[0, n)
    size_t matched = 0;            // longest prefix of text that ends the stream so far
  };
  static void advance(Stop& stop, char byte);

  std::vector<Stop> stops_;
  std::string held_;  // the end of the stream that has not left
  std::optional<size_t> hit_;
};

}  // namespace octet
