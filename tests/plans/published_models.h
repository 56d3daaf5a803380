#pragma once
// Checkpoints in the shapes that are published, as sparse files of full length: headers, static
// scales, and no weight.
#include <filesystem>
#include <string>
#include <vector>

namespace octet {

enum class Published {
  Qwen3Block,            // Qwen3-32B, compressed-tensors, 128x128 blocks, dynamic groups of 128
  Qwen3BlockFp8,         // the same as quant_method fp8
  Qwen3BlockWeightOnly,  // the same without quantised activations
  LlamaChannel,          // Llama-3.1-8B-Instruct, channels, dynamic tokens
  LlamaTensor,           // the same, one scale per tensor, static inputs
};

// Writes config.json, the index and the shards into `dir`, which is made. Returns `dir`.
std::filesystem::path write_published(const std::filesystem::path& dir, Published model);

}  // namespace octet
