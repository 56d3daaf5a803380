// A chat template: whatever it says, compiling and rendering it gives text or one clear error,
// within its limits.
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/error.h"
#include "text/jinja_print.h"
#include "text/jinja_template.h"
#include "text/utf8.h"

namespace octet::jinja {
namespace {

constexpr const char* kVariables = R"({
  "bos_token": "<s>", "eos_token": "</s>", "add_generation_prompt": true, "documents": null,
  "messages": [{"role": "system", "content": " Be kind.\n"},
    {"role": "user", "content": "Gr\u00fc\u00dfe, \u4e16\u754c \ud83d\ude00 <b>"},
    {"role": "assistant", "content": null, "tool_calls": [{"type": "function", "id": "abcdef123",
      "function": {"name": "clock", "arguments": {"zone": "UTC", "days": 2, "exact": true}}}]},
    {"role": "tool", "content": "noon", "tool_call_id": "abcdef123"}],
  "tools": [{"type": "function", "function": {"name": "clock", "description": "Tells \"time\".",
    "parameters": {"type": "object", "properties": {"zone": {"type": "string"}}}}}],
  "numbers": [3, 1, 4, 1, 5], "words": ["b", "A", "c", "a"], "pi": 3.14159, "big": 1e16,
  "person": {"name": "Ada", "age": 36, "address": {"zip": [1, 2]}}, "text": "Hello, World"})";

const Value& variables() {
  static Budget budget{Limits{}};
  static const Value value = from_json(nlohmann::ordered_json::parse(kVariables), "", budget);
  return value;
}

// Small, so that many templates are tried in a second.
constexpr Limits kLimits{.steps = 100'000, .text_bytes = 1 << 20, .memory_bytes = 1 << 24};

void try_template(std::string_view source) {
  const std::string text =
      Template(source, "fuzz")
          .render(
              variables(), [] { return std::tm{.tm_mday = 6, .tm_mon = 6, .tm_year = 124}; },
              kLimits);
  OCTET_CHECK(!find_invalid_utf8(text), "a text of {} bytes that is not UTF-8", text.size());
}

}  // namespace
}  // namespace octet::jinja

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    octet::jinja::try_template({reinterpret_cast<const char*>(data), size});
  } catch (const octet::Error& error) {
    if (error.code() != octet::Code::BadInput) __builtin_trap();
  }
  return 0;
}
