// A tokenizer.json, a tokenizer_config.json and a text, with a zero byte between: whatever the
// files say, they are refused with one clear error or encode and decode the text.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "text/detokenizer.h"
#include "text/tokenizer.h"

namespace octet {
namespace {

// Takes what lies before the next zero byte, or all that is left.
std::string_view take(std::string_view& input) {
  const size_t end = input.find('\0');
  const std::string_view part = input.substr(0, end);
  input.remove_prefix(end == std::string_view::npos ? input.size() : end + 1);
  return part;
}

// A stream of ids gives the text that they give at once.
void compare_stream(const Tokenizer& tokenizer, const std::vector<int32_t>& ids, bool skip) {
  Detokenizer detokenizer(tokenizer, skip);
  std::string streamed;
  for (const int32_t id : ids) streamed += detokenizer.push(id);
  streamed += detokenizer.flush();
  const std::string whole = tokenizer.decode(ids, skip);
  OCTET_CHECK(streamed == whole, "the stream \"{}\" differs from \"{}\"", streamed, whole);
}

void try_tokenizer(std::string_view input) {
  const std::string_view json = take(input), config = take(input), text = input;
  const Tokenizer tokenizer = Tokenizer::parse(json, config);
  std::vector<int32_t> any;  // ids that no text need have
  for (const char byte : text) any.push_back(static_cast<int32_t>(static_cast<uint8_t>(byte)));
  for (const bool skip : {false, true}) compare_stream(tokenizer, any, skip);
  compare_stream(tokenizer, tokenizer.encode(text), false);
  compare_stream(tokenizer, tokenizer.encode_guarded(text, "\xEF\xB7\x90"), false);
}

}  // namespace
}  // namespace octet

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    octet::try_tokenizer({reinterpret_cast<const char*>(data), size});
  } catch (const octet::Error& error) {
    if (error.code() != octet::Code::BadInput) __builtin_trap();
  }
  return 0;
}
