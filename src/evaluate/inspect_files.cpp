// Opening what can be opened: a checkpoint, or the shards that are left of one.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <system_error>

#include "base/error.h"
#include "base/plural.h"
#include "evaluate/inspect_parts.h"
#include "io/hub_cache.h"
#include "io/json_file.h"

namespace octet {
namespace {

namespace fs = std::filesystem;

constexpr int kMostShards = 10'000;  // of a file's name; published models have some hundred
constexpr std::string_view kIndexEnd = ".safetensors.index.json";

void add_tensors(const Checkpoint& checkpoint, TensorSet& tensors) {
  for (const TensorEntry& entry : checkpoint.tensors()) {
    const ConstTensorView view = checkpoint.view(entry);
    tensors.add({entry.name,
                 entry.dtype,
                 entry.shape,
                 {view.data, view.data == nullptr ? 0 : entry.bytes}});
  }
}

// Names of the files in `dir` that end so, sorted.
std::vector<std::string> files_ending(const fs::path& dir, std::string_view end) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(dir, error), last; !error && it != last; it.increment(error)) {
    const std::string file = it->path().filename().string();
    if (file.ends_with(end) && !file.starts_with('.')) names.push_back(file);
  }
  std::sort(names.begin(), names.end());
  return names;
}

// Files that the index names, each with the number of its tensors; empty without a readable index.
std::map<std::string, int64_t> indexed_files(const fs::path& dir) {
  std::map<std::string, int64_t> files;
  const std::vector<std::string> indexes = files_ending(dir, kIndexEnd);
  if (indexes.empty()) return files;
  const std::string main_index = "model" + std::string(kIndexEnd);
  const bool has_main = std::binary_search(indexes.begin(), indexes.end(), main_index);
  try {
    const nlohmann::json json = read_json_object(dir / (has_main ? main_index : indexes.front()));
    const auto map = json.find("weight_map");
    if (map == json.end() || !map->is_object()) return files;
    for (const auto& [tensor, file] : map->items()) {
      const fs::path path = file.is_string() ? fs::path(file.get<std::string>()) : fs::path();
      // A name that leads elsewhere is Checkpoint's to refuse.
      if (!path.empty() && path == path.filename()) ++files[path.string()];
    }
  } catch (const Error&) {
    return {};  // opening the checkpoint has said it already
  }
  return files;
}

// The same by the numbers in names, "x-00001-of-00003.safetensors", for files without an index.
std::map<std::string, int64_t> numbered_files(const std::vector<std::string>& files) {
  std::map<std::string, int64_t> all;
  for (const std::string& file : files) {
    const std::string stem = file.substr(0, file.rfind('.'));
    const size_t of = stem.rfind("-of-");
    if (of == std::string::npos || of < 6 || stem.size() != of + 9) continue;
    int count = 0;
    const auto read = std::from_chars(stem.data() + of + 4, stem.data() + stem.size(), count);
    if (read.ec != std::errc{} || read.ptr != stem.data() + stem.size() || count > kMostShards)
      continue;
    for (int i = 1; i <= count; ++i) {
      all.emplace(fmt::format("{}{:05}-of-{:05}.safetensors", stem.substr(0, of - 5), i, count), 0);
    }
  }
  return all;
}

// How to get a file of the model that is not there.
std::string absent_hint(const fs::path& dir, const std::string& file) {
  const std::array files{file};
  const auto origin = hub_origin(dir);
  return origin ? fetch_hint(*origin, files) : std::string("download the file");
}

// True when a file that opening a checkpoint reads cannot be opened, by its permissions or links;
// other faults of the environment are no fault of the checkpoint.
bool has_unreadable_file(const fs::path& dir) {
  std::vector<std::string> names = files_ending(dir, ".safetensors");
  const std::vector<std::string> indexes = files_ending(dir, kIndexEnd);
  names.insert(names.end(), indexes.begin(), indexes.end());
  names.emplace_back("generation_config.json");
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    if (!is_there(dir / name)) return false;
    try {
      const RandomAccessFile file(dir / name);
      return false;
    } catch (const Error&) {
      return true;
    }
  });
}

// Reads a shard's header and maps its bytes; a damaged one is a finding.
void read_shard(const fs::path& file, HeaderReader& reader, Inspected& model, Findings& out) {
  try {
    const SafetensorsHeader header = reader.read(file, false);
    model.maps.emplace_back(file);
    const std::span<const std::byte> bytes = model.maps.back().bytes();
    for (const HeaderTensor& tensor : header.tensors) {
      if (header.header_bytes + tensor.end > bytes.size()) continue;  // it has just been cut
      model.tensors.add(
          {tensor.name, tensor.dtype, tensor.shape,
           bytes.subspan(header.header_bytes + tensor.begin, tensor.end - tensor.begin)});
    }
  } catch (const Error& error) {
    model.complete = false;
    std::error_code unreadable;
    const bool fetched = fs::exists(file, unreadable) || unreadable;
    out.add("shard-broken", file.filename().string(), "", error.message(),
            error.code() == Code::Environment ? error.hint()
            : fetched                         ? refetch_hint(file, "get the file again")
                      : absent_hint(file.parent_path(), file.filename().string()));
  }
}

void read_what_is_left(const Error& why, Inspected& model, Findings& out) {
  const std::vector<std::string> files = files_ending(model.dir, ".safetensors");
  std::map<std::string, int64_t> indexed = indexed_files(model.dir);
  if (indexed.empty()) indexed = numbered_files(files);
  for (const auto& [file, tensors] : indexed) {
    if (std::binary_search(files.begin(), files.end(), file)) continue;
    out.add("shard-absent", file, "the file",
            tensors == 0 ? std::string("none")
                         : fmt::format("none; the index has {} in it", counted(tensors, "tensor")),
            absent_hint(model.dir, file));
  }
  HeaderReader reader(model.names);
  for (const std::string& file : files) {
    if (indexed.empty() || indexed.count(file) != 0)
      read_shard(model.dir / file, reader, model, out);
  }
  if (model.tensors.all().empty() && out.empty()) throw why;  // there is nothing to inspect
  if (out.empty()) out.add("checkpoint", model_name(model.dir), "", why.message(), why.hint());
}

void use_checkpoint(Checkpoint checkpoint, Inspected& model) {
  model.checkpoint = std::move(checkpoint);
  model.config = std::make_unique<nlohmann::json>(model.checkpoint->config());
  model.complete = true;
  add_tensors(*model.checkpoint, model.tensors);
}

// Opens files that are whole but not as their index says; false when more is wrong.
bool open_without_index(const fs::path& path, Inspected& model) {
  try {
    use_checkpoint(Checkpoint::open(path, false, IndexMismatch::Ignore), model);
    return true;
  } catch (const Error& error) {
    if (error.code() != Code::BadInput && !has_unreadable_file(model.dir)) throw;
    return false;  // opening it with its index has said it already
  }
}

std::optional<Error> quantization_refusal(const nlohmann::json& config) {
  try {
    QuantConfig::parse(config);
    return std::nullopt;
  } catch (const Error& error) {
    return error;
  }
}

}  // namespace

std::unique_ptr<Inspected> open_for_inspection(const fs::path& path, Findings& out) {
  auto model = std::make_unique<Inspected>();
  std::error_code unreadable;
  const bool folder = fs::is_directory(path, unreadable);
  model->dir = folder ? path : (path.has_parent_path() ? path.parent_path() : fs::path("."));
  try {
    use_checkpoint(Checkpoint::open(path), *model);
  } catch (const Error& error) {
    if (!folder || !(error.code() == Code::BadInput || has_unreadable_file(path))) throw;
    if (open_without_index(path, *model)) {
      out.add("checkpoint", model_name(model->dir), "", error.message(), error.hint());
      return model;
    }
    try {
      model->config = std::make_unique<nlohmann::json>(read_json_object(path / "config.json"));
    } catch (const Error&) {
      throw error;  // without a config this is no model
    }
    if (const auto refused = quantization_refusal(*model->config))
      out.add("quantization-config", "config.json", "", refused->message(), refused->hint());
    read_what_is_left(error, *model, out);
  }
  return model;
}

}  // namespace octet
