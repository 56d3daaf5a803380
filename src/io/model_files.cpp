#include "io/model_files.h"

#include <fmt/ranges.h>
#include <simdjson.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <system_error>

#include "base/error.h"
#include "base/mapped_file.h"
#include "base/plural.h"
#include "base/printable.h"
#include "io/hub_cache.h"

namespace octet {
namespace {

namespace fs = std::filesystem;

// The index of a model with 100,000 tensors has about 10 MB.
constexpr uint64_t kMaxIndexBytes = 64U << 20;
constexpr std::string_view kIndexSuffix = ".safetensors.index.json";
constexpr std::string_view kWeights = "model.safetensors";

// "a, b, c and 4 more": a message names at most three files.
std::string some_of(const std::vector<std::string>& names) {
  constexpr size_t kShown = 3;
  std::string text = fmt::format(
      "{}", fmt::join(names.begin(), names.begin() + std::min(names.size(), kShown), ", "));
  if (names.size() > kShown) text += fmt::format(" and {} more", names.size() - kShown);
  return text;
}

struct Listing {
  std::vector<std::string> weights;  // *.safetensors, sorted
  std::vector<std::string> indexes;  // *.safetensors.index.json, sorted
  std::vector<std::string> foreign;  // weights of formats that Octet does not read
};

Listing list_folder(const fs::path& dir) {
  Listing listing;
  std::error_code error;
  for (fs::directory_iterator it(dir, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name.starts_with('.')) continue;
    const std::string extension = it->path().extension().string();
    if (extension == ".safetensors") listing.weights.push_back(name);
    if (name.ends_with(kIndexSuffix)) listing.indexes.push_back(name);
    if (extension == ".gguf" || extension == ".bin" || extension == ".pth") {
      listing.foreign.push_back(name);
    }
  }
  if (error) {
    throw_error(Code::Environment,
                fmt::format("cannot list folder {}: {}", dir.string(), error.message()),
                "check the permissions of the folder");
  }
  std::sort(listing.weights.begin(), listing.weights.end());
  std::sort(listing.indexes.begin(), listing.indexes.end());
  std::sort(listing.foreign.begin(), listing.foreign.end());
  return listing;
}

// "x-00002-of-00007.safetensors" as its stem "x", 2 and 7.
struct ShardName {
  std::string stem;
  int number = 0;
  int count = 0;
};

std::optional<ShardName> parse_shard_name(const std::string& name) {
  const std::string base = fs::path(name).stem().string();
  const size_t of = base.rfind("-of-");
  if (of == std::string::npos || of == 0) return std::nullopt;
  const size_t dash = base.rfind('-', of - 1);
  if (dash == std::string::npos) return std::nullopt;
  const std::string number = base.substr(dash + 1, of - dash - 1);
  const std::string count = base.substr(of + 4);
  const auto is_number = [](const std::string& s) {
    return !s.empty() && s.size() <= 6 &&
           std::all_of(s.begin(), s.end(), [](char c) { return c >= '0' && c <= '9'; });
  };
  if (!is_number(number) || !is_number(count)) return std::nullopt;
  return ShardName{base.substr(0, dash), std::stoi(number), std::stoi(count)};
}

// What to do about `files` that `dir` lacks: the command that fetches them where the folder is a
// snapshot of the Hugging Face cache, else `otherwise`.
std::string missing_hint(const fs::path& dir, std::span<const std::string> files,
                         std::string_view otherwise) {
  const auto origin = hub_origin(dir);
  return origin ? fetch_hint(*origin, files) : std::string(otherwise);
}

// Throws when files that `dir` lists are links to what is not there: blobs of the Hugging Face
// cache that were removed, for the most part.
void check_links(const fs::path& dir, const std::vector<std::string>& names) {
  std::vector<std::string> dangling;
  for (const std::string& name : names) {
    std::error_code error;
    // An error, such as links in a circle, is left to opening.
    if (!fs::exists(dir / name, error) && !error && fs::is_symlink(dir / name, error)) {
      dangling.push_back(name);
    }
  }
  if (dangling.empty()) return;
  throw_error(Code::BadInput,
              fmt::format("{} holds {} to what is not there: {}", dir.string(),
                          counted(dangling.size(), "link"), some_of(dangling)),
              missing_hint(dir, dangling, "restore what they lead to, or download them again"));
}

// The files beside the weights that Octet reads where they are there: that a link to one leads
// nowhere must not read as its absence.
constexpr std::array kReadWhenThere{"config.json",           "generation_config.json",
                                    "hf_quant_config.json",  "tokenizer.json",
                                    "tokenizer_config.json", "special_tokens_map.json",
                                    "chat_template.jinja",   "chat_template.json"};

// The numbers of a set of shards that are not there, as file names; at most `limit` of them.
std::vector<std::string> missing_shards(const std::string& stem, int count,
                                        const std::set<int>& numbers, size_t limit) {
  std::vector<std::string> missing;
  for (int number = 1; number <= count && missing.size() < limit; ++number) {
    if (numbers.contains(number)) continue;
    missing.push_back(fmt::format("{}-{:05}-of-{:05}.safetensors", stem, number, count));
  }
  return missing;
}

// Without an index the file names themselves say how many shards there are.
void check_numbering(const fs::path& dir, const std::vector<std::string>& names) {
  constexpr size_t kMaxNamed = 64;
  std::map<std::pair<std::string, int>, std::set<int>> sets;
  for (const std::string& name : names) {
    if (const auto shard = parse_shard_name(name)) {
      sets[{shard->stem, shard->count}].insert(shard->number);
    }
  }
  for (const auto& [key, numbers] : sets) {
    if (numbers.size() == static_cast<size_t>(key.second)) continue;
    const std::vector<std::string> missing =
        missing_shards(key.first, key.second, numbers, kMaxNamed);
    throw_error(Code::BadInput,
                fmt::format("{}: {} of {} shards {}-*-of-{:05}.safetensors are there, missing: {}",
                            dir.string(), numbers.size(), key.second, key.first, key.second,
                            some_of(missing)),
                missing_hint(dir, missing, "download the missing files"));
  }
}

// A file name of an index. It comes from the network: it may not lead out of the folder.
bool is_inside(const fs::path& name) {
  if (name.empty() || name.is_absolute() || name.has_root_path()) return false;
  return std::none_of(name.begin(), name.end(), [](const fs::path& part) {
    return part == ".." || part == "." || part.empty();
  });
}

void read_index(ModelFiles& files) {
  const std::string where = files.index.string();
  const std::string text = read_text_file(files.index, kMaxIndexBytes);
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  simdjson::dom::object map;
  const simdjson::error_code error = parser.parse(text).get(root);
  if (error != simdjson::SUCCESS) {
    throw_error(Code::BadInput,
                fmt::format("{} is not JSON: {}", where, simdjson::error_message(error)),
                refetch_hint(files.index));
  }
  if (root["weight_map"].get(map) != simdjson::SUCCESS) {
    throw_error(Code::BadInput, fmt::format("{} has no object weight_map", where));
  }
  std::map<std::string, int32_t, std::less<>> numbers;
  std::set<std::string_view> seen;
  std::vector<std::pair<std::string, std::string_view>> entries;
  for (const simdjson::dom::key_value_pair entry : map) {
    std::string_view file;
    if (entry.value.get(file) != simdjson::SUCCESS || !is_inside(fs::path(file))) {
      throw_error(
          Code::BadInput,
          fmt::format("{}: weight_map.\"{}\" is {}, expected a file name inside the folder", where,
                      printable_name(entry.key), printable_name(simdjson::minify(entry.value))));
    }
    if (!seen.insert(entry.key).second) {
      throw_error(Code::BadInput,
                  fmt::format("{}: duplicate tensor \"{}\"", where, printable_name(entry.key)));
    }
    entries.emplace_back(entry.key, file);
    numbers.emplace(file, 0);
  }
  if (numbers.empty()) throw_error(Code::BadInput, fmt::format("{}: weight_map is empty", where));

  std::vector<std::string> missing;
  for (auto& [name, number] : numbers) {
    number = static_cast<int32_t>(files.shards.size());
    files.shards.push_back(files.dir / name);
    std::error_code unreadable;  // opening it says why
    if (!fs::exists(files.shards.back(), unreadable) && !unreadable) missing.push_back(name);
  }
  if (!missing.empty()) {
    throw_error(Code::BadInput,
                fmt::format("{} names {} files, {} of them are missing: {}", where, numbers.size(),
                            missing.size(), some_of(missing)),
                missing_hint(files.dir, missing,
                             "download the missing files, or an index that belongs to the files"));
  }
  for (auto& [name, file] : entries) {
    files.index_map.emplace_back(std::move(name), numbers.find(file)->second);
  }
}

constexpr std::string_view kImportHint = "`octet import FILE.gguf FOLDER` makes a folder of a GGUF";

// Whether the cache knows that the repository itself has no weights that Octet reads.
bool known_to_have_none(const HubOrigin& origin) {
  const fs::path absent = origin.repository / ".no_exist" / origin.commit;
  std::error_code unreadable;
  return fs::exists(absent / kWeights, unreadable) &&
         fs::exists(absent / ("model" + std::string(kIndexSuffix)), unreadable);
}

[[noreturn]] void throw_no_weights(const fs::path& dir, const Listing& listing) {
  if (!listing.foreign.empty()) {
    const bool gguf = std::any_of(listing.foreign.begin(), listing.foreign.end(),
                                  [](const std::string& name) { return name.ends_with(".gguf"); });
    throw_error(Code::BadInput,
                fmt::format("{} holds no .safetensors file; {} cannot be read", dir.string(),
                            some_of(listing.foreign)),
                gguf ? std::string(kImportHint) : "convert the model to safetensors");
  }
  const auto origin = hub_origin(dir);
  if (origin && known_to_have_none(*origin)) {
    throw_error(Code::BadInput,
                fmt::format("{} holds no .safetensors file, and {} has none to fetch", dir.string(),
                            origin->repo),
                "name a model that is published as safetensors");
  }
  throw_error(Code::BadInput, fmt::format("{} holds no .safetensors file", dir.string()),
              missing_hint(dir, {}, "name the folder that holds config.json and the weights"));
}

void find_in_folder(ModelFiles& files) {
  const Listing listing = list_folder(files.dir);
  const auto has = [](const std::vector<std::string>& names, const std::string& name) {
    return std::binary_search(names.begin(), names.end(), name);
  };
  const std::string main_index = "model" + std::string(kIndexSuffix);
  std::set<std::string> used;
  if (has(listing.indexes, main_index) || listing.indexes.size() == 1) {
    const std::string index = has(listing.indexes, main_index) ? main_index : listing.indexes[0];
    check_links(files.dir, {index});
    files.index = files.dir / index;
    read_index(files);
    for (const fs::path& shard : files.shards) used.insert(shard.filename().string());
  } else if (has(listing.weights, std::string(kWeights))) {
    check_links(files.dir, {std::string(kWeights)});
    files.shards.push_back(files.dir / kWeights);
    used.insert(std::string(kWeights));
  } else {
    if (listing.weights.empty()) throw_no_weights(files.dir, listing);
    check_numbering(files.dir, listing.weights);
    check_links(files.dir, listing.weights);
    for (const std::string& name : listing.weights) {
      files.shards.push_back(files.dir / name);
      used.insert(name);
    }
  }
  std::vector<std::string> strays;
  for (const std::string& name : listing.weights) {
    if (!used.contains(name)) strays.push_back(name);
  }
  if (!strays.empty()) {
    files.notes.push_back(fmt::format(
        "not read: {} ({})", some_of(strays),
        files.index.empty() ? "model.safetensors is there" : "the index does not name it"));
  }
}

}  // namespace

ModelFiles find_model_files(const fs::path& model) {
  ModelFiles files;
  std::error_code error;
  const fs::file_status status = fs::status(model, error);
  if (error == std::errc::too_many_symbolic_link_levels) {
    throw_error(Code::Environment, fmt::format("model {}: {}", model.string(), error.message()),
                "its symbolic links lead in a circle: name the folder that they were to lead to");
  }
  if (!fs::exists(status)) {
    check_fetched(model);
    throw_error(error && error != std::errc::no_such_file_or_directory &&
                        error != std::errc::not_a_directory
                    ? Code::Environment
                    : Code::BadInput,
                fmt::format("model {}: {}", model.string(),
                            error ? error.message() : "no such file or folder"),
                "name a local folder with config.json and .safetensors files, or ORG/NAME of the "
                "Hugging Face cache");
  }
  if (fs::is_directory(status)) {
    files.dir = model;
    find_in_folder(files);
    check_links(files.dir, {kReadWhenThere.begin(), kReadWhenThere.end()});
    return files;
  }
  if (model.extension() != ".safetensors") {
    throw_error(Code::BadInput,
                fmt::format("model {} is neither a folder nor a .safetensors file", model.string()),
                model.extension() == ".gguf"
                    ? std::string(kImportHint)
                    : "name the folder of the model; PyTorch files are not read");
  }
  const auto shard = parse_shard_name(model.filename().string());
  if (shard && shard->count > 1) {
    throw_error(
        Code::BadInput,
        fmt::format("model {} is shard {} of {}", model.string(), shard->number, shard->count),
        "name the folder that holds all shards");
  }
  files.dir = model.has_parent_path() ? model.parent_path() : fs::path(".");
  files.shards.push_back(model);
  return files;
}

}  // namespace octet
