#include "io/checkpoint.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/error.h"
#include "base/mapped_file.h"
#include "base/plural.h"
#include "base/printable.h"
#include "io/hub_cache.h"
#include "io/json_file.h"
#include "io/model_files.h"
#include "io/safetensors_header.h"

namespace octet {
namespace {

// Open addressing from a name to its place in a list of entries; at most half full.
class NameTable {
 public:
  static constexpr int32_t kEmpty = -1;

  void reset(size_t names) { slots_.assign(std::bit_ceil(std::max<size_t>(2 * names, 8)), kEmpty); }

  // The index of the entry called `name`, or kEmpty. Requires reset().
  int32_t find(std::string_view name, const std::vector<TensorEntry>& entries) const {
    return slots_[probe(name, entries)];
  }

  // Requires that find(name) is kEmpty and that there is room.
  void insert(std::string_view name, size_t index, const std::vector<TensorEntry>& entries) {
    slots_[probe(name, entries)] = static_cast<int32_t>(index);
  }

 private:
  size_t probe(std::string_view name, const std::vector<TensorEntry>& entries) const {
    size_t at = std::hash<std::string_view>{}(name) & (slots_.size() - 1);
    while (slots_[at] != kEmpty && entries[static_cast<size_t>(slots_[at])].name != name) {
      at = (at + 1) & (slots_.size() - 1);
    }
    return at;
  }

  std::vector<int32_t> slots_;
};

// True when both files hold the same bytes there.
bool same_bytes(const std::filesystem::path& a_path, const TensorEntry& a,
                const std::filesystem::path& b_path, const TensorEntry& b) {
  const RandomAccessFile a_file(a_path);
  const RandomAccessFile b_file(b_path);
  if (a_file.size() < a.offset + a.bytes || b_file.size() < b.offset + b.bytes) return false;
  constexpr uint64_t kChunk = 1U << 20;
  std::vector<std::byte> left(std::min(kChunk, a.bytes));
  std::vector<std::byte> right(left.size());
  for (uint64_t done = 0; done < a.bytes; done += left.size()) {
    const size_t n = std::min<uint64_t>(left.size(), a.bytes - done);
    a_file.read(a.offset + done, std::span(left).first(n));
    b_file.read(b.offset + done, std::span(right).first(n));
    if (std::memcmp(left.data(), right.data(), n) != 0) return false;
  }
  return true;
}

bool is_aligned(const TensorEntry& entry) {
  return entry.offset % static_cast<uint64_t>(bytes_of(entry.dtype)) == 0;
}

}  // namespace

struct Checkpoint::Impl {
  ModelFiles files;
  bool headers_only = false;
  nlohmann::json config;
  std::optional<nlohmann::json> generation_config;
  QuantConfig quant;
  NameArena arena;
  std::vector<TensorEntry> entries;
  NameTable table;
  std::vector<MappedFile> maps;  // by shard; empty with headers_only
  uint64_t file_bytes = 0;
  std::vector<std::string> notes;

  mutable std::mutex copies_mutex;
  mutable std::unordered_map<const TensorEntry*, std::vector<std::byte>> copies;

  void read_configs();
  void read_headers(IndexMismatch mismatch);
  void check_index(const std::unordered_set<std::string_view>& duplicates) const;
  void note_unaligned();
  const std::byte* aligned_copy(const TensorEntry& entry, const std::byte* data) const;
};

namespace {

// Runs one step of opening; its errors get `hint` unless they have one.
template <class Step>
auto hinted(std::string_view hint, const Step& step) {
  try {
    return step();
  } catch (const Error& error) {
    throw error.or_hint(hint);
  }
}

constexpr std::string_view kQuantHint =
    "octet reads 8-bit floats written as quant_method compressed-tensors or fp8, and checkpoints "
    "that are not quantised";

}  // namespace

void Checkpoint::Impl::read_configs() {
  const auto origin = hub_origin(files.dir);
  if (origin && !is_there(files.dir / "config.json")) {
    const std::string missing[] = {"config.json"};
    throw_error(Code::BadInput, fmt::format("{} has no config.json", files.dir.string()),
                fetch_hint(*origin, missing));
  }
  config = read_json_object(files.dir / "config.json");
  const auto generation_path = files.dir / "generation_config.json";
  if (is_there(generation_path)) {
    generation_config = read_json_object(generation_path);
  }
  try {
    quant = QuantConfig::parse(config);
  } catch (const Error& e) {
    throw e.with((files.dir / "config.json").string()).or_hint(kQuantHint);
  }
  const auto modelopt_path = files.dir / "hf_quant_config.json";
  if (!quant.quantised() && is_there(modelopt_path)) {
    throw_error(Code::BadInput,
                fmt::format("{}: quantisation \"modelopt\" is not supported; supported are "
                            "\"compressed-tensors\" and \"fp8\" in config.json",
                            modelopt_path.string()),
                std::string(kQuantHint));
  }
}

void Checkpoint::Impl::read_headers(IndexMismatch mismatch) {
  std::vector<SafetensorsHeader> headers;
  HeaderReader reader(arena);
  size_t count = 0;
  for (const auto& shard : files.shards) {
    headers.push_back(reader.read(shard, headers_only));
    count += headers.back().tensors.size();
    file_bytes += headers.back().header_bytes + headers.back().data_bytes;
  }
  if (count > size_t{std::numeric_limits<int32_t>::max()}) {
    throw_error(Code::BadInput, fmt::format("{} holds {} tensors", files.dir.string(), count));
  }
  entries.reserve(count);
  table.reset(count);
  std::unordered_set<std::string_view> duplicates;
  for (size_t i = 0; i < headers.size(); ++i) {
    for (const HeaderTensor& tensor : headers[i].tensors) {
      const TensorEntry entry{tensor.name,
                              tensor.dtype,
                              tensor.shape,
                              static_cast<int32_t>(i),
                              headers[i].header_bytes + tensor.begin,
                              tensor.end - tensor.begin};
      const int32_t at = table.find(entry.name, entries);
      if (at == NameTable::kEmpty) {
        table.insert(entry.name, entries.size(), entries);
        entries.push_back(entry);
        continue;
      }
      const TensorEntry& first = entries[static_cast<size_t>(at)];
      const auto& first_path = files.shards[static_cast<size_t>(first.shard)];
      if (first.dtype != entry.dtype || first.shape != entry.shape ||
          !same_bytes(first_path, first, files.shards[i], entry)) {
        throw_error(
            Code::BadInput,
            fmt::format("duplicate tensor \"{}\": {} and {} hold different ones",
                        printable_name(entry.name), first_path.string(), files.shards[i].string()));
      }
      if (duplicates.insert(entry.name).second) {
        notes.push_back(fmt::format("tensor \"{}\" is in more than one file, with equal bytes",
                                    printable_name(entry.name)));
      }
    }
  }
  if (mismatch == IndexMismatch::Refuse) check_index(duplicates);
}

void Checkpoint::Impl::check_index(const std::unordered_set<std::string_view>& duplicates) const {
  if (files.index.empty()) return;
  std::vector<bool> named(entries.size());
  for (const auto& [name, shard] : files.index_map) {
    const int32_t at = table.find(name, entries);
    const std::string expected = files.shards[static_cast<size_t>(shard)].filename().string();
    if (at == NameTable::kEmpty) {
      throw_error(Code::BadInput,
                  fmt::format("{} names tensor \"{}\" in {}, which does not hold it",
                              files.index.string(), printable_name(name), expected));
    }
    const TensorEntry& entry = entries[static_cast<size_t>(at)];
    named[static_cast<size_t>(at)] = true;
    if (entry.shard != shard && !duplicates.contains(entry.name)) {
      throw_error(Code::BadInput,
                  fmt::format("{} names tensor \"{}\" in {}, it is in {}", files.index.string(),
                              printable_name(name), expected,
                              files.shards[static_cast<size_t>(entry.shard)].filename().string()));
    }
  }
  const auto extra = std::find(named.begin(), named.end(), false);
  if (extra != named.end()) {
    const TensorEntry& entry = entries[static_cast<size_t>(extra - named.begin())];
    throw_error(Code::BadInput,
                fmt::format("{} does not name {} of its files, the first is \"{}\" in {}",
                            files.index.string(),
                            counted(std::count(named.begin(), named.end(), false), "tensor"),
                            printable_name(entry.name),
                            files.shards[static_cast<size_t>(entry.shard)].filename().string()),
                "use the index that belongs to these files, or remove it");
  }
}

void Checkpoint::Impl::note_unaligned() {
  size_t count = 0;
  uint64_t bytes = 0;
  for (const TensorEntry& entry : entries) {
    if (is_aligned(entry)) continue;
    ++count;
    bytes += entry.bytes;
  }
  if (count != 0) {
    notes.push_back(
        fmt::format("{} {} at unaligned offsets; those in use are copied to memory, up to {} bytes",
                    counted(count, "tensor"), count == 1 ? "lies" : "lie", bytes));
  }
}

const std::byte* Checkpoint::Impl::aligned_copy(const TensorEntry& entry,
                                                const std::byte* data) const {
  const std::lock_guard lock(copies_mutex);
  std::vector<std::byte>& copy = copies[&entry];
  if (copy.empty()) copy.assign(data, data + entry.bytes);
  return copy.data();
}

Checkpoint Checkpoint::open(const std::filesystem::path& model, bool headers_only,
                            IndexMismatch mismatch) {
  auto impl = std::make_unique<Impl>();
  impl->headers_only = headers_only;
  impl->files = hinted(
      "the folder must hold one model as it was published: config.json, "
      ".safetensors files and, for several, their index",
      [&] { return find_model_files(model); });
  impl->notes = impl->files.notes;
  hinted("the file must be as transformers wrote it for the model", [&] { impl->read_configs(); });
  hinted("the file is damaged or cut short, or files of two models are mixed: get them again",
         [&] { impl->read_headers(mismatch); });
  impl->note_unaligned();
  if (!headers_only) {
    for (const auto& shard : impl->files.shards) impl->maps.emplace_back(shard);
    for (const TensorEntry& entry : impl->entries) {
      // The file may have changed between reading its header and mapping it.
      const auto& path = impl->files.shards[static_cast<size_t>(entry.shard)];
      const size_t size = impl->maps[static_cast<size_t>(entry.shard)].bytes().size();
      if (entry.offset + entry.bytes > size) {
        throw_error(Code::Environment,
                    fmt::format("{} shrank to {} bytes while it was read", path.string(), size),
                    "try again when nothing writes to the file");
      }
    }
  }
  return Checkpoint(std::move(impl));
}

Checkpoint::Checkpoint(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Checkpoint::Checkpoint(Checkpoint&&) noexcept = default;
Checkpoint& Checkpoint::operator=(Checkpoint&&) noexcept = default;
Checkpoint::~Checkpoint() = default;

const std::filesystem::path& Checkpoint::dir() const {
  return impl_->files.dir;
}

bool Checkpoint::headers_only() const {
  return impl_->headers_only;
}

const nlohmann::json& Checkpoint::config() const {
  return impl_->config;
}

const nlohmann::json* Checkpoint::generation_config() const {
  return impl_->generation_config ? &*impl_->generation_config : nullptr;
}

const QuantConfig& Checkpoint::quant() const {
  return impl_->quant;
}

std::span<const std::filesystem::path> Checkpoint::shards() const {
  return impl_->files.shards;
}

std::span<const TensorEntry> Checkpoint::tensors() const {
  return impl_->entries;
}

const TensorEntry* Checkpoint::find(std::string_view name) const {
  const int32_t at = impl_->table.find(name, impl_->entries);
  return at == NameTable::kEmpty ? nullptr : &impl_->entries[static_cast<size_t>(at)];
}

ConstTensorView Checkpoint::view(const TensorEntry& entry) const {
  OCTET_CHECK(
      &entry >= impl_->entries.data() && &entry < impl_->entries.data() + impl_->entries.size(),
      "tensor \"{}\" of another checkpoint", entry.name);
  ConstTensorView view{nullptr, entry.dtype, entry.shape, 0};
  if (entry.shape.rank() == 2) view.row_stride = entry.shape[1];
  if (impl_->headers_only || entry.bytes == 0) return view;
  view.data = impl_->maps[static_cast<size_t>(entry.shard)].bytes().data() + entry.offset;
  if (!is_aligned(entry)) view.data = impl_->aligned_copy(entry, view.data);
  return view;
}

uint64_t Checkpoint::file_bytes() const {
  return impl_->file_bytes;
}

std::span<const std::string> Checkpoint::notes() const {
  return impl_->notes;
}

}  // namespace octet
