// A config.json of any bytes: both dialects of quantisation words, and what they say of modules.
#include <cstdint>
#include <nlohmann/json.hpp>

#include "fuzz_target.h"
#include "io/json_file.h"
#include "io/quant_config.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace octet;
  static const MemoryFile file("config");
  file.assign(data, size);
  expect_no_bug([] {
    const QuantConfig config = QuantConfig::parse(read_json_object(file.path()));
    for (const char* module :
         {"model.layers.0.self_attn.q_proj", "model.layers.1.mlp.down_proj", "lm_head",
          "model.language_model.layers.11.mlp.gate_proj", "model.layers.0.mlp.experts.3.up_proj"}) {
      expect_no_bug([&] { static_cast<void>(config.explain(module)); });
    }
  });
  return 0;
}
