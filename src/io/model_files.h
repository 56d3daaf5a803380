#pragma once
// Which files of a folder are the model.
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace octet {

struct ModelFiles {
  std::filesystem::path dir;                               // holds config.json
  std::vector<std::filesystem::path> shards;               // safetensors files, each exists
  std::filesystem::path index;                             // the index file, or empty
  std::vector<std::pair<std::string, int32_t>> index_map;  // tensor name, index of shards
  std::vector<std::string> notes;                          // stray files
};

// Finds the shards of `model`, a folder or one .safetensors file. An index decides when there is
// one; then model.safetensors; then every *.safetensors. Throws BadInput: nothing found, files that
// the index or the shard numbering names are missing, a broken index, another format.
ModelFiles find_model_files(const std::filesystem::path& model);

}  // namespace octet
