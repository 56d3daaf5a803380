#pragma once
// The normalizer part of tokenizer.json: what is done to a text before its words are looked for.
// Normalization forms are those of utf8proc's Unicode version (15 in Debian 12); the reference's
// tables are older, so runs of combining marks that are newer than those may be ordered otherwise
// there.
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "text/pre_tokenizer_pattern.h"

namespace octet {

// The Unicode normalization forms (TR15).
enum class NormalForm : uint8_t { C, D, KC, KD };

// Puts a text in front, except of an empty one.
struct PrependStep {
  std::string text;
};

// Puts `content` for every `text`.
struct ReplaceStep {
  std::string text;  // not empty
  std::string content;
};

// Puts `content` for every match of a pattern.
struct ReplacePatternStep {
  Pattern pattern;
  std::string content;
};

// A chain of steps; without any it leaves text alone. Immutable; any number of threads may use one.
class Normalizer {
 public:
  using Step = std::variant<NormalForm, PrependStep, ReplaceStep, ReplacePatternStep>;
  Normalizer() = default;
  // Throws BadInput for more than 64 steps, or when they could make a text over 256 times as long.
  explicit Normalizer(std::vector<Step> steps);

  // The normalized text: `text` itself, or a view of `buffer`. Requires well-formed UTF-8.
  std::string_view apply(std::string_view text, std::string& buffer) const;

 private:
  std::vector<Step> steps_;
};

}  // namespace octet
