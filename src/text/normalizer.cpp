#include "text/normalizer.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>

#include "base/error.h"
#include "text/text_replace.h"

namespace octet {
namespace {

// Published normalizers grow a text at most 12 times: "\u2581" in front of one letter, and for
// spaces. A file that asks for more would use its reader's memory up.
constexpr double kMostGrowth = 256;
constexpr size_t kMostSteps = 64;  // published ones have two or three

// By what factor a step may grow a text, at most (for forms: TR15, 12.1, UTF-8).
double growth(NormalForm form) {
  return form == NormalForm::C || form == NormalForm::D ? 3 : 11;
}
double growth(const PrependStep& step) {
  return 1 + static_cast<double>(step.text.size());
}
double growth(const ReplaceStep& step) {
  const auto content = static_cast<double>(step.content.size());
  return std::max(1.0, content / static_cast<double>(step.text.size()));
}
double growth(const ReplacePatternStep& step) {
  return 2 + 2 * static_cast<double>(step.content.size());  // between bytes, and at both ends
}

utf8proc_option_t options_of(NormalForm form) {
  int options = UTF8PROC_STABLE;
  options |=
      form == NormalForm::C || form == NormalForm::KC ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE;
  if (form == NormalForm::KC || form == NormalForm::KD) options |= UTF8PROC_COMPAT;
  return static_cast<utf8proc_option_t>(options);
}

// What a step makes of a text; nullopt when it leaves it alone.
std::optional<std::string> apply_step(NormalForm form, std::string_view text) {
  // Text below U+0300, whose lead bytes are below 0xCC, is in form C already (Unicode TR15, 9.1);
  // ASCII is in every form.
  const uint8_t plain_below = form == NormalForm::C ? 0xCC : 0x80;
  const auto plain = [&](char byte) { return static_cast<uint8_t>(byte) < plain_below; };
  if (std::all_of(text.begin(), text.end(), plain)) return std::nullopt;
  utf8proc_uint8_t* result = nullptr;
  const utf8proc_ssize_t length =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                   static_cast<utf8proc_ssize_t>(text.size()), &result, options_of(form));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(result, &std::free);
  OCTET_CHECK(length >= 0, "utf8proc_map: {}", utf8proc_errmsg(length));
  return std::string(reinterpret_cast<const char*>(result), static_cast<size_t>(length));
}

std::optional<std::string> apply_step(const PrependStep& step, std::string_view text) {
  if (text.empty()) return std::nullopt;
  return std::string(step.text).append(text);
}

std::optional<std::string> apply_step(const ReplaceStep& step, std::string_view text) {
  if (text.find(step.text) == std::string_view::npos) return std::nullopt;
  return replace_all(text, step.text, step.content);
}

std::optional<std::string> apply_step(const ReplacePatternStep& step, std::string_view text) {
  Pattern::Searcher searcher(step.pattern);
  searcher.start(text);
  std::string result;
  size_t done = 0;
  while (const std::optional<PatternMatch> match = searcher.next()) {
    result.append(text, done, match->begin - done).append(step.content);
    done = match->end;
  }
  return result.append(text, done);
}

}  // namespace

Normalizer::Normalizer(std::vector<Step> steps) : steps_(std::move(steps)) {
  if (steps_.size() > kMostSteps) {
    throw_error(Code::BadInput,
                fmt::format("has {} steps, at most {} are supported", steps_.size(), kMostSteps));
  }
  double factor = 1;
  for (const Step& step : steps_) {
    factor *= std::visit([](const auto& s) { return growth(s); }, step);
    if (factor > kMostGrowth) {
      throw_error(Code::BadInput,
                  fmt::format("could make a text {:.0f} times as long, at most {} are "
                              "allowed",
                              factor, kMostGrowth));
    }
  }
}

std::string_view Normalizer::apply(std::string_view text, std::string& buffer) const {
  for (const Step& step : steps_) {
    auto changed = std::visit([&](const auto& s) { return apply_step(s, text); }, step);
    if (!changed) continue;
    buffer = std::move(*changed);
    text = buffer;
  }
  return text;
}

}  // namespace octet
