#include "text/pre_tokenizer_pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>

#include "base/error.h"
#include "text/utf8.h"

namespace octet {
namespace {

// Backtracking steps one match may take. The published patterns take a few per character of a run
// of blanks, so the limit grows with the text; a pattern that explodes still stops after about a
// tenth of a second.
constexpr size_t kStepsAtLeast = 4'000'000;
constexpr size_t kStepsPerByte = 8;
// Heap of the interpreter, in KiB; it runs only where the JIT compiler's stack does not suffice.
constexpr uint32_t kHeapKib = 64 * 1024;

std::string pcre2_message(int code) {
  PCRE2_UCHAR text[256] = {};
  pcre2_get_error_message(code, text, sizeof text);
  return reinterpret_cast<const char*>(text);
}

}  // namespace

struct Pattern::Compiled {
  pcre2_code* compiled = nullptr;
  std::string shown;  // as tokenizer.json has it, for messages

  ~Compiled() { pcre2_code_free(compiled); }
};

Pattern::Pattern(std::string_view shown, const std::string& pcre2, bool literal)
    : code_(std::make_unique<Compiled>()) {
  code_->shown = shown;
  pcre2_compile_context* context = pcre2_compile_context_create(nullptr);
  OCTET_CHECK(context != nullptr, "no memory for a pattern");
  pcre2_set_newline(context, PCRE2_NEWLINE_LF);
  pcre2_set_parens_nest_limit(context, 100);
  const uint32_t options =
      literal ? PCRE2_UTF | PCRE2_LITERAL : PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE;
  int error = 0;
  PCRE2_SIZE offset = 0;
  code_->compiled = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pcre2.data()), pcre2.size(), options,
                                  &error, &offset, context);
  pcre2_compile_context_free(context);
  if (code_->compiled == nullptr) {
    throw_error(Code::BadInput,
                fmt::format("pattern \"{}\" does not compile: {} (near byte {} of \"{}\")", shown,
                            pcre2_message(error), offset, pcre2));
  }
  // Where the system forbids run-time code this fails and the interpreter serves, with the same
  // matches.
  pcre2_jit_compile(code_->compiled, PCRE2_JIT_COMPLETE);
}

Pattern Pattern::regex(std::string_view pattern) {
  return {pattern, pcre2_pattern(pattern), false};
}
Pattern Pattern::literal(std::string_view text) {
  return {text, std::string(text), true};
}
Pattern::Pattern(Pattern&&) noexcept = default;
Pattern& Pattern::operator=(Pattern&&) noexcept = default;
Pattern::~Pattern() = default;

struct Pattern::Searcher::State {
  const Pattern::Compiled* code;
  pcre2_match_data* match = nullptr;
  pcre2_match_context* context = nullptr;
  std::string_view text;
  size_t from = 0;                 // where the next search begins; past the end when done
  std::optional<size_t> last_end;  // of the match before

  ~State() {
    pcre2_match_data_free(match);
    pcre2_match_context_free(context);
  }
  bool search();
};

// Finds the leftmost match at or after `from`; false if there is none.
bool Pattern::Searcher::State::search() {
  const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  const auto run = [&](uint32_t options) {
    return pcre2_match(code->compiled, subject, text.size(), from, PCRE2_NO_UTF_CHECK | options,
                       match, context);
  };
  int rc = run(0);
  if (rc == PCRE2_ERROR_JIT_STACKLIMIT) rc = run(PCRE2_NO_JIT);
  if (rc == PCRE2_ERROR_NOMATCH) return false;
  if (rc < 0) {
    throw_error(Code::BadInput,
                fmt::format("pattern \"{}\" gave up at byte {} of {}: {}", code->shown, from,
                            text.size(), pcre2_message(rc)),
                "shorten the text, or split it into several requests");
  }
  return true;
}

Pattern::Searcher::Searcher(const Pattern& pattern) : state_(std::make_unique<State>()) {
  state_->code = pattern.code_.get();
  state_->match = pcre2_match_data_create(1, nullptr);
  state_->context = pcre2_match_context_create(nullptr);
  OCTET_CHECK(state_->match != nullptr && state_->context != nullptr, "no memory for a search");
  pcre2_set_heap_limit(state_->context, kHeapKib);
}

Pattern::Searcher::Searcher(Searcher&&) noexcept = default;
Pattern::Searcher::~Searcher() = default;

void Pattern::Searcher::start(std::string_view text) {
  state_->text = text;
  state_->from = 0;
  state_->last_end.reset();
  const size_t steps = std::max(kStepsAtLeast, text.size() * kStepsPerByte);
  pcre2_set_match_limit(state_->context,
                        static_cast<uint32_t>(std::min<size_t>(steps, UINT32_MAX)));
}

std::optional<PatternMatch> Pattern::Searcher::next() {
  State& s = *state_;
  while (s.from <= s.text.size() && s.search()) {
    const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(s.match);
    const PatternMatch found{ends[0], ends[1]};
    if (found.begin == found.end && s.last_end == found.end) {
      s.from += s.from < s.text.size() ? code_point_at(s.text, s.from).bytes : 1;
      continue;
    }
    s.from = found.end;
    s.last_end = found.end;
    return found;
  }
  s.from = s.text.size() + 1;
  return std::nullopt;
}

}  // namespace octet
