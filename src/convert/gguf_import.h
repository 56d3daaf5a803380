#pragma once
// A GGUF file to a Hugging Face folder in bf16.
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "io/gguf.h"

namespace octet {

// Bytes of a safetensors file before a new one begins, as the Hugging Face hub splits models.
inline constexpr uint64_t kDefaultShardBytes = 5'000'000'000;

struct ImportJob {
  const GgufFile* input = nullptr;
  std::filesystem::path output;  // a folder that does not exist yet, or an empty one
  uint64_t max_shard_bytes = kDefaultShardBytes;  // a larger tensor has a file of its own
};

struct ImportProgress {
  uint64_t bytes_done = 0;
  uint64_t bytes_total = 0;  // of the tensors in the GGUF
};

// The result of a job, for a person.
struct ImportSummary {
  std::string architecture;
  int64_t tensors = 0;
  int64_t files = 0;                     // of safetensors
  uint64_t bytes_in = 0, bytes_out = 0;  // of the tensors, of the safetensors files
  std::vector<std::string> notes;        // one line each
};

// Writes config.json, generation_config.json, tokenizer.json, tokenizer_config.json and the weights
// as bf16 safetensors with an index when there are several files. The folder appears whole or not
// at all, and only when its tokenizer can be read back. `progress` may throw to stop. Throws
// BadInput naming file, value or tensor, CannotRun for what Octet does not compute, Environment
// when the disk is full.
ImportSummary import_gguf(const ImportJob& job,
                          const std::function<void(ImportProgress)>& progress);

}  // namespace octet
