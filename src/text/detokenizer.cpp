#include "text/detokenizer.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "text/token_decoder.h"

namespace octet {

Detokenizer::Detokenizer(const Tokenizer& tokenizer, bool skip_special_tokens)
    : tokenizer_(&tokenizer), skip_special_(skip_special_tokens) {
  for (const StripDecoder& strip : tokenizer.decoder().strips) strips_left_.push_back(strip.start);
}

void Detokenizer::push(int32_t id, std::string& text) {
  if (!tokenizer_->has(id) || (skip_special_ && tokenizer_->is_special(id))) return;
  const size_t begin = text.size();
  const TokenDecoder& decoder = tokenizer_->decoder();
  if (std::exchange(first_, false) && decoder.first_differs()) {
    characters_.push(decoder.bytes(tokenizer_->spelled(id), true), text);
  } else {
    characters_.push(tokenizer_->token_bytes(id), text);
  }
  strip_from(begin, text);
}

void Detokenizer::flush(std::string& text) {
  const size_t begin = text.size();
  characters_.flush(text);
  strip_from(begin, text);
}

// Takes from the new end of a text what the decoder strips from its beginning. A strip is over when
// another character comes.
void Detokenizer::strip_from(size_t begin, std::string& text) {
  for (size_t i = 0; i < strips_left_.size(); ++i) {
    const std::string& content = tokenizer_->decoder().strips[i].content;
    size_t& left = strips_left_[i];
    size_t cut = 0;
    for (; left > 0 && text.compare(begin + cut, content.size(), content) == 0; --left)
      cut += content.size();
    text.erase(begin, cut);
    if (text.size() > begin) left = 0;
  }
}

std::string Detokenizer::push(int32_t id) {
  std::string text;
  push(id, text);
  return text;
}

std::string Detokenizer::flush() {
  std::string text;
  flush(text);
  return text;
}

StopScanner::StopScanner(std::vector<std::string> stops) {
  for (std::string& text : stops) {
    if (text.empty()) {
      throw_error(Code::BadInput, fmt::format("stop string {} is empty", stops_.size()),
                  "leave it out; an empty string would stop every answer before it begins");
    }
    // Knuth, Morris and Pratt: border by induction over the prefixes.
    std::vector<uint32_t> border(text.size() + 1);
    for (size_t n = 2; n <= text.size(); ++n) {
      uint32_t k = border[n - 1];
      while (k > 0 && text[k] != text[n - 1]) k = border[k];
      border[n] = text[k] == text[n - 1] ? k + 1 : 0;
    }
    stops_.push_back({std::move(text), std::move(border)});
  }
}

void StopScanner::advance(Stop& stop, char byte) {
  while (stop.matched > 0 && stop.text[stop.matched] != byte)
    stop.matched = stop.border[stop.matched];
  if (stop.text[stop.matched] == byte) ++stop.matched;
}

std::string StopScanner::push(std::string_view piece) {
  if (hit_) return {};
  for (const char byte : piece) {
    held_.push_back(byte);
    for (size_t i = 0; i < stops_.size(); ++i) {
      advance(stops_[i], byte);
      const bool whole = stops_[i].matched == stops_[i].text.size();
      if (whole && (!hit_ || stops_[i].text.size() > stops_[*hit_].text.size())) hit_ = i;
    }
    if (hit_) {
      held_.resize(held_.size() - stops_[*hit_].text.size());
      return std::exchange(held_, {});
    }
  }
  size_t keep = 0;
  for (const Stop& stop : stops_) keep = std::max(keep, stop.matched);
  std::string text = held_.substr(0, held_.size() - keep);
  held_.erase(0, text.size());
  return text;
}

std::string StopScanner::flush() {
  return std::exchange(held_, {});
}

}  // namespace octet
