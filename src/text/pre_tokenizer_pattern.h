#pragma once
// The regular expressions of tokenizer.json. They are written for Oniguruma (Ruby syntax, Unicode),
// the engine of the reference; here they are rewritten so that PCRE2 finds the same matches, and
// whatever cannot be is refused by name.
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace octet {

// `pattern` (Oniguruma, Ruby syntax) rewritten for PCRE2 with UTF, UCP and MULTILINE. Differences
// that it bridges: the sets behind \s \w \h and of \p{Script}, '{n,m}+' (a repeated repeat, not
// possessive), '{,n}', \v, \uHHHH. Throws BadInput naming the construct and its byte offset when no
// equivalent is known.
std::string pcre2_pattern(std::string_view pattern);

// One match, in bytes of the searched text.
struct PatternMatch {
  size_t begin, end;
};

// A compiled pattern. Immutable after construction, so any number of threads may search with it.
class Pattern {
 public:
  // A regular expression of tokenizer.json. Throws BadInput when it is not understood.
  static Pattern regex(std::string_view pattern);
  // The text itself, nothing in it special.
  static Pattern literal(std::string_view text);

  Pattern(Pattern&&) noexcept;
  Pattern& operator=(Pattern&&) noexcept;
  ~Pattern();

  // Walks over the matches of a text, leftmost first, as Oniguruma's iterator does: an empty match
  // right behind the match before it is passed over. One searcher serves one thread, and may be
  // given one text after another.
  class Searcher {
   public:
    explicit Searcher(const Pattern& pattern);
    Searcher(Searcher&&) noexcept;
    ~Searcher();

    // Starts anew on `text`, which must be well-formed UTF-8 and outlive the walk.
    void start(std::string_view text);
    // The next match. Throws BadInput when the work for one match passes the limit, naming the
    // place.
    std::optional<PatternMatch> next();

   private:
    struct State;
    std::unique_ptr<State> state_;
  };

 private:
  struct Compiled;
  Pattern(std::string_view shown, const std::string& pcre2, bool literal);

  std::unique_ptr<Compiled> code_;
};

}  // namespace octet
