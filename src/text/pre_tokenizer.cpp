#include "text/pre_tokenizer.h"

#include <algorithm>

#include "text/text_replace.h"
#include "text/unicode.h"
#include "text/utf8.h"

namespace octet {
namespace {

// The split pattern that ByteLevel applies by itself (GPT-2, encoder.py).
constexpr std::string_view kGpt2Words =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

// Calls `range(begin, end, match)` with contiguous ranges that cover `text`: the matches and what
// lies between.
template <class F>
void for_each_match(Pattern::Searcher& searcher, std::string_view text, F&& range) {
  size_t done = 0;
  searcher.start(text);
  while (const std::optional<PatternMatch> match = searcher.next()) {
    if (done != match->begin) range(done, match->begin, false);
    range(match->begin, match->end, true);
    done = match->end;
  }
  if (done != text.size()) range(done, text.size(), false);
}

// The same for numbers, one character a match.
template <class F>
void for_each_number(std::string_view text, F&& range) {
  size_t done = 0;
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = code_point_at(text, at);
    if (is_numeric(c.value)) {
      if (done != at) range(done, at, false);
      range(at, at + c.bytes, true);
      done = at + c.bytes;
    }
    at += c.bytes;
  }
  if (done != text.size()) range(done, text.size(), false);
}

// Applies a behaviour to ranges that cover a text, in place; Removed drops the matches. The quirks
// are the reference's: of neighbouring delimiters only the first is merged with the text before it
// (the last with the text behind it).
template <class Range>
void apply(SplitBehavior behavior, std::vector<Range>& ranges) {
  std::vector<Range> kept;
  bool before = false;  // whether the range before was a match
  const auto join = [&](const Range& range, bool joins) {
    if (joins && !kept.empty()) {
      kept.back().begin = std::min(kept.back().begin, range.begin);
      kept.back().end = std::max(kept.back().end, range.end);
    } else {
      kept.push_back(range);
    }
    before = range.match;
  };
  switch (behavior) {
    case SplitBehavior::Isolated:
      return;
    case SplitBehavior::Removed:
      std::erase_if(ranges, [](const Range& range) { return range.match; });
      return;
    case SplitBehavior::Contiguous:
      for (const Range& range : ranges) join(range, range.match == before);
      break;
    case SplitBehavior::MergedWithPrevious:
      for (const Range& range : ranges) join(range, range.match && !before);
      break;
    case SplitBehavior::MergedWithNext:
      for (auto range = ranges.rbegin(); range != ranges.rend(); ++range) {
        join(*range, range->match && !before);
      }
      std::reverse(kept.begin(), kept.end());
      break;
  }
  ranges = std::move(kept);
}

}  // namespace

ByteLevelStage byte_level_stage(bool add_prefix_space, bool use_regex) {
  return {add_prefix_space, use_regex ? std::optional(Pattern::regex(kGpt2Words)) : std::nullopt};
}

PreTokenizer::Worker::Worker(const PreTokenizer& owner) : owner_(owner) {
  for (const Stage& stage : owner.stages_) {
    const auto* split = std::get_if<SplitStage>(&stage);
    const auto* metaspace = std::get_if<MetaspaceStage>(&stage);
    if (split != nullptr) {
      searchers_.emplace_back(std::in_place, split->pattern);
    } else if (metaspace != nullptr && metaspace->cuts) {
      searchers_.emplace_back(std::in_place, *metaspace->cuts);
    } else {
      searchers_.emplace_back();
    }
  }
  if (owner.last_ && owner.last_->words) words_.emplace(*owner.last_->words);
}

void PreTokenizer::Worker::split(std::string_view text, bool begins,
                                 FunctionRef<void(std::string_view)> word) {
  ranges_.assign(1, {0, text.size(), false});
  for (size_t i = 0; i < owner_.stages_.size(); ++i) {
    const Stage& stage = owner_.stages_[i];
    begins = begins && !ranges_.empty() && ranges_[0].begin == 0;
    const auto* metaspace = std::get_if<MetaspaceStage>(&stage);
    if (metaspace != nullptr) text = mark_spaces(*metaspace, text, begins);
    if (metaspace == nullptr || metaspace->cuts) cut(stage, searchers_[i], text);
  }
  for (const Range& range : ranges_) {
    if (range.begin < range.end) last(text.substr(range.begin, range.end - range.begin), word);
  }
}

// The text that a Metaspace stage makes of the ranges, which become ranges of it.
std::string_view PreTokenizer::Worker::mark_spaces(const MetaspaceStage& stage,
                                                   std::string_view text, bool begins) {
  std::string marked;
  for (Range& range : ranges_) {
    const std::string part =
        replace_all(text.substr(range.begin, range.end - range.begin), " ", stage.replacement);
    const bool first = begins && &range == ranges_.data();
    range.begin = marked.size();
    const bool wanted = stage.prepend == MetaspaceStage::Prepend::Always ||
                        (stage.prepend == MetaspaceStage::Prepend::First && first);
    if (wanted && !part.empty() && !part.starts_with(stage.replacement))
      marked += stage.replacement;
    marked += part;
    range.end = marked.size();
  }
  marked_ = std::move(marked);
  return marked_;
}

// Cuts every range of ranges_ by one stage. A stage sees each range as a text of its own.
void PreTokenizer::Worker::cut(const Stage& stage, std::optional<Pattern::Searcher>& searcher,
                               std::string_view text) {
  next_.clear();
  for (const Range& whole : ranges_) {
    const std::string_view part = text.substr(whole.begin, whole.end - whole.begin);
    if (part.empty()) continue;
    found_.clear();
    const auto add = [&](size_t begin, size_t end, bool match) {
      found_.push_back({whole.begin + begin, whole.begin + end, match});
    };
    if (const auto* split = std::get_if<SplitStage>(&stage)) {
      for_each_match(*searcher, part,
                     [&](size_t b, size_t e, bool m) { add(b, e, m != split->invert); });
      apply(split->behavior, found_);
    } else if (std::holds_alternative<MetaspaceStage>(stage)) {
      for_each_match(*searcher, part, add);
      apply(SplitBehavior::MergedWithNext, found_);
    } else {
      for_each_number(part, add);
      apply(std::get<DigitsStage>(stage).individual ? SplitBehavior::Isolated
                                                    : SplitBehavior::Contiguous,
            found_);
    }
    next_.insert(next_.end(), found_.begin(), found_.end());
  }
  ranges_.swap(next_);
}

void PreTokenizer::Worker::last(std::string_view part, FunctionRef<void(std::string_view)> word) {
  if (!owner_.last_) return word(part);
  if (owner_.last_->add_prefix_space && part.front() != ' ') {
    spaced_.assign(1, ' ').append(part);
    part = spaced_;
  }
  if (!words_) return word(part);
  for_each_match(*words_, part, [&](size_t begin, size_t end, bool) {
    if (begin < end) word(part.substr(begin, end - begin));
  });
}

}  // namespace octet
