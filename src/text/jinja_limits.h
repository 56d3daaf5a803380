#pragma once
// What one rendering of an untrusted template may spend, and the ledger that stops it with a clear
// error. Memory is counted as it is produced and never given back: the sum bounds what can be live.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace octet::jinja {

// Limits of one rendering. The defaults leave room for a context of a million tokens.
struct Limits {
  size_t depth = 400;  // nested expressions, statements and macro calls
  // Evaluated nodes, visited items, 64-byte pieces of searched text; some 50 to 100 ns each.
  uint64_t steps = 10'000'000;
  uint64_t text_bytes = 64u << 20;   // one string, and the output
  uint64_t memory_bytes = 1u << 30;  // strings and containers produced, in all
};

// What a string, list or dict costs beside its bytes and items: the object, its count of owners,
// the allocator's share.
inline constexpr uint64_t kObjectBytes = 96;

// What a scope of variables, or a piece of text of its own, costs in steps beside what runs in it.
inline constexpr uint64_t kScopeSteps = 4;

// How deep lists, dicts and tuples may nest, in a value and in JSON input; bounds every recursion
// over values.
inline constexpr int kMaxValueDepth = 200;

// Throws Error{BadInput}; the machine puts the template's name and line before the message.
[[noreturn]] inline void fail(std::string message, std::string hint = {}) {
  throw_error(Code::BadInput, std::move(message), std::move(hint));
}

// The ledger of one rendering; every operation on values that can take long charges it.
class Budget {
 public:
  explicit Budget(const Limits& limits) : limits_(limits) {}

  // Charges `count` units of work. Throws when the rendering has used them up.
  void step(uint64_t count = 1) {
    if (count > limits_.steps - steps_) out_of_steps();
    steps_ += count;
  }

  // Charges the search or copy of `bytes` bytes of text.
  void scan(uint64_t bytes) { step(1 + bytes / 64); }

  // Charges memory about to be produced.
  void allocate(uint64_t bytes) {
    if (bytes > limits_.memory_bytes - memory_) out_of_memory();
    memory_ += bytes;
  }

  // Throws when a string of `bytes` bytes is longer than one string may be.
  void check_text(uint64_t bytes) const {
    if (bytes > limits_.text_bytes) text_too_long(bytes);
  }

  const Limits& limits() const { return limits_; }

 private:
  [[noreturn]] void out_of_steps() const {
    fail(fmt::format("the template runs too long: more than {} steps", limits_.steps),
         "a chat template needs a few thousand; look for a loop that never ends");
  }
  [[noreturn]] void out_of_memory() const {
    fail(
        fmt::format("the template uses too much memory: more than {} bytes", limits_.memory_bytes));
  }
  [[noreturn]] void text_too_long(uint64_t bytes) const {
    fail(fmt::format("the template makes a string of {} bytes, at most {} are allowed", bytes,
                     limits_.text_bytes));
  }

  Limits limits_;
  uint64_t steps_ = 0;
  uint64_t memory_ = 0;
};

// A string that grows under a budget.
class TextBuilder {
 public:
  explicit TextBuilder(Budget& budget) : budget_(budget) {}

  TextBuilder& operator+=(std::string_view text) {
    budget_.check_text(text_.size() + text.size());
    text_ += text;
    return *this;
  }
  TextBuilder& operator+=(char c) { return *this += std::string_view(&c, 1); }

  // Appends `text` `count` times.
  void repeat(std::string_view text, uint64_t count) {
    if (text.empty()) return;
    if (count > budget_.limits().text_bytes) budget_.check_text(count);
    budget_.check_text(text_.size() + text.size() * count);
    for (uint64_t i = 0; i < count; ++i) text_ += text;
  }

  size_t size() const { return text_.size(); }
  Budget& budget() { return budget_; }

  // The finished string; its bytes are charged.
  std::string take() {
    budget_.allocate(kObjectBytes + text_.size());
    budget_.scan(text_.size());
    return std::move(text_);
  }

 private:
  Budget& budget_;
  std::string text_;
};

}  // namespace octet::jinja
