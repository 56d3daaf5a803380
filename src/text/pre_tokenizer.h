#pragma once
// The pre-tokenizer part of tokenizer.json: cuts a text into the words that byte pair encoding
// works on.
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/function_ref.h"
#include "text/pre_tokenizer_pattern.h"

namespace octet {

// What a cut does with the delimiters it finds.
enum class SplitBehavior { Removed, Isolated, MergedWithPrevious, MergedWithNext, Contiguous };

// Cuts at the matches of a pattern, or, inverted, at what lies between them.
struct SplitStage {
  Pattern pattern;
  SplitBehavior behavior;
  bool invert;
};

// Cuts at numbers (general categories Nd, Nl, No): each character by itself, or runs of them.
struct DigitsStage {
  bool individual;
};

// Writes spaces as `replacement`, puts one in front of a part that does not begin with it, and, if
// `cuts` is set, begins a word at every one (SentencePiece style).
struct MetaspaceStage {
  enum class Prepend : uint8_t { Always, First, Never };  // First: only where the text begins
  std::string replacement;                                // one character
  Prepend prepend;
  std::optional<Pattern> cuts;  // finds `replacement`
};

// The last stage of every byte-level tokenizer. The change of bytes into printable characters is
// not done here: words stay bytes, and the vocabulary is kept in bytes too.
struct ByteLevelStage {
  bool add_prefix_space;         // put a space before a part that does not begin with one
  std::optional<Pattern> words;  // GPT-2's pattern, where use_regex is set
};
ByteLevelStage byte_level_stage(bool add_prefix_space, bool use_regex);

// A chain of cuts that may end in ByteLevel. Without any a text is one word. Immutable; any number
// of threads may split, each with its own worker.
class PreTokenizer {
 public:
  using Stage = std::variant<SplitStage, DigitsStage, MetaspaceStage>;
  PreTokenizer(std::vector<Stage> stages, std::optional<ByteLevelStage> last)
      : stages_(std::move(stages)), last_(std::move(last)) {}

  bool byte_level() const { return last_.has_value(); }

  // The state of one thread's work.
  class Worker {
   public:
    explicit Worker(const PreTokenizer& owner);
    // Calls `word` with each word of `text` in order; a view lives only during its call. `begins`:
    // nothing of the whole text lies before this part of it. Requires well-formed UTF-8.
    void split(std::string_view text, bool begins, FunctionRef<void(std::string_view)> word);

   private:
    struct Range {
      size_t begin, end;
      bool match;
    };
    void cut(const Stage& stage, std::optional<Pattern::Searcher>& searcher, std::string_view text);
    std::string_view mark_spaces(const MetaspaceStage& stage, std::string_view text, bool begins);
    void last(std::string_view part, FunctionRef<void(std::string_view)> word);

    const PreTokenizer& owner_;
    std::vector<std::optional<Pattern::Searcher>> searchers_;  // of the stages that have a pattern
    std::optional<Pattern::Searcher> words_;
    std::vector<Range> ranges_, found_;
    std::vector<Range> next_;
    std::string spaced_, marked_;
  };

 private:
  std::vector<Stage> stages_;
  std::optional<ByteLevelStage> last_;
};

}  // namespace octet
