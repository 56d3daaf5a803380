// A GGUF file of any bytes: its header, and the model and tokenizer that an import would make of
// it.
#include <simdjson.h>
#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "convert/gguf_decode.h"
#include "convert/gguf_model.h"
#include "convert/gguf_tokenizer.h"
#include "fuzz_target.h"
#include "text/tokenizer_json.h"

namespace octet {
namespace {

void decode(const GgufFile& file, const GgufModel& model) {
  // Values are decoded by rows; one row of each tensor runs every loop.
  std::vector<uint16_t> values;
  for (const ImportTensor& tensor : model.tensors) {
    const Shape& shape = tensor.source->shape;
    const int64_t rows = shape.rank() == 2 ? shape[0] : 1;
    values.resize(static_cast<size_t>(shape.elements() / rows));
    const uint64_t row_bytes = tensor.source->bytes / static_cast<uint64_t>(rows);
    decode_blocks(*tensor.source->type->decode,
                  file.bytes(*tensor.source).subspan(tensor.source->bytes - row_bytes), values);
  }
}

}  // namespace
}  // namespace octet

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace octet;
  expect_no_bug([&] { parse_gguf(std::as_bytes(std::span(data, size)), "input"); });
  static const MemoryFile memory("gguf");
  memory.assign(data, size);
  expect_no_bug([] {
    const GgufFile file = GgufFile::open(memory.path());
    expect_no_bug([&] {
      const GgufModel model = read_gguf_model(file);
      static_cast<void>(gguf_config(file, model).dump());
      decode(file, model);
    });
    const GgufTokenizer tokenizer = read_gguf_tokenizer(file, INT32_MAX, 1);
    const simdjson::padded_string text(tokenizer.tokenizer_json);
    parse_tokenizer_json(text);
  });
  return 0;
}
