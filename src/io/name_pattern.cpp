#define PCRE2_CODE_UNIT_WIDTH 8
#include "io/name_pattern.h"

#include <pcre2.h>

#include "base/error.h"
#include "base/printable.h"

namespace octet {
namespace {

// A sensible expression needs about ten steps per character of a name. These stop a hostile one
// within milliseconds.
constexpr uint32_t kMatchSteps = 100'000;
constexpr uint32_t kHeapKib = 4096;
constexpr size_t kMaxExpression = 64 * 1024;

std::string message_of(int error) {
  PCRE2_UCHAR text[256];
  const int length = pcre2_get_error_message(error, text, sizeof text);
  return length < 0 ? fmt::format("error {}", error) : std::string(text, text + length);
}

struct FreeContext {
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
};

// One for the process: it only carries limits and is never written again.
pcre2_match_context* limits() {
  static const std::unique_ptr<pcre2_match_context, FreeContext> context = [] {
    pcre2_match_context* made = pcre2_match_context_create(nullptr);
    if (made == nullptr) throw std::bad_alloc();
    pcre2_set_match_limit(made, kMatchSteps);
    pcre2_set_heap_limit(made, kHeapKib);
    return std::unique_ptr<pcre2_match_context, FreeContext>(made);
  }();
  return context.get();
}

struct FreeMatch {
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};

}  // namespace

NamePattern::NamePattern(std::string_view expression, std::string_view where) : text_(expression) {
  if (expression.size() > kMaxExpression) {
    throw_error(Code::BadInput,
                fmt::format("{}: regular expression of {} characters, expected at most {}", where,
                            expression.size(), kMaxExpression));
  }
  int error = 0;
  PCRE2_SIZE offset = 0;
  pcre2_code* code = pcre2_compile(
      reinterpret_cast<PCRE2_SPTR>(expression.data()), expression.size(),
      PCRE2_ANCHORED | PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &error, &offset, nullptr);
  if (code == nullptr) {
    throw_error(Code::BadInput,
                fmt::format("{}: regular expression \"{}\" at character {}: {}", where,
                            printable_name(expression), offset, message_of(error)));
  }
  code_ = std::shared_ptr<pcre2_code>(code, pcre2_code_free);
}

bool NamePattern::matches(std::string_view name) const {
  const std::unique_ptr<pcre2_match_data, FreeMatch> data(pcre2_match_data_create(1, nullptr));
  if (data == nullptr) throw std::bad_alloc();
  const int result = pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(name.data()),
                                 name.size(), 0, 0, data.get(), limits());
  if (result >= 0) return true;
  if (result == PCRE2_ERROR_NOMATCH) return false;
  throw_error(Code::BadInput, fmt::format("regular expression \"{}\" on module \"{}\": {}",
                                          printable_name(text_), name, message_of(result)));
}

}  // namespace octet
