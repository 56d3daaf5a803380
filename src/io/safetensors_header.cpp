#include "io/safetensors_header.h"

#include <simdjson.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <unordered_set>

#include "base/error.h"
#include "base/mapped_file.h"
#include "base/plural.h"
#include "base/printable.h"
#include "io/hub_cache.h"

namespace octet {
namespace {

namespace dom = simdjson::dom;

// The safetensors library refuses longer headers too (safetensors/src/tensor.rs, MAX_HEADER_SIZE).
constexpr uint64_t kMaxHeaderBytes = 100'000'000;
// Far above any checkpoint; keeps sums of offsets inside 64 bits and file offsets positive.
constexpr uint64_t kMaxDataBytes = uint64_t{1} << 62;
// A header is nested three deep; simdjson's memory grows with this number.
constexpr size_t kMaxDepth = 16;

static_assert(std::endian::native == std::endian::little, "safetensors is little-endian");

// Where in which file a check failed; turns into the beginning of every message.
struct Place {
  const std::filesystem::path& file;
  std::string_view tensor;

  [[noreturn]] void fail(const std::string& what) const {
    throw_error(Code::BadInput,
                tensor.empty() ? fmt::format("{}: {}", file.string(), what)
                               : fmt::format("{}: tensor \"{}\": {}", file.string(),
                                             printable_name(tensor), what),
                refetch_hint(file));
  }
};

std::string json_text(const dom::element& value) {
  std::string text = simdjson::minify(value);
  constexpr size_t kShown = 60;
  if (text.size() > kShown) text = text.substr(0, kShown) + "...";
  return text;
}

uint64_t header_length(const RandomAccessFile& in, const Place& place) {
  if (in.size() < sizeof(uint64_t)) {
    place.fail(fmt::format("has {} bytes, expected at least 8 for the header length", in.size()));
  }
  uint64_t length = 0;
  in.read(0, std::as_writable_bytes(std::span(&length, 1)));
  if (length > kMaxHeaderBytes) {
    place.fail(
        fmt::format("states a header of {} bytes, expected at most {}", length, kMaxHeaderBytes));
  }
  if (length < 2)
    place.fail(fmt::format("states a header of {}, expected JSON", counted(length, "byte")));
  if (length > in.size() - sizeof length) {
    place.fail(fmt::format("is truncated: the header needs {} bytes, the file has {}",
                           length + sizeof length, in.size()));
  }
  return length;
}

DType read_dtype(const dom::element& value, const Place& place) {
  std::string_view word;
  if (value.get(word) != simdjson::SUCCESS) {
    place.fail(fmt::format("dtype is {}, expected a string", json_text(value)));
  }
  const std::optional<DType> dtype = dtype_from_safetensors(word);
  if (!dtype) {
    std::string known;
    for (const DTypeInfo& row : detail::kDTypes) {
      known += fmt::format("{}{}", known.empty() ? "" : ", ", row.safetensors);
    }
    place.fail(fmt::format("dtype \"{}\" is not one of {}", printable_name(word), known));
  }
  return *dtype;
}

Shape read_shape(const dom::element& value, const Place& place) {
  dom::array extents;
  if (value.get(extents) != simdjson::SUCCESS) {
    place.fail(fmt::format("shape is {}, expected an array", json_text(value)));
  }
  if (extents.size() > size_t{Shape::kMaxRank}) {
    place.fail(fmt::format("shape has {} extents, expected at most {}", extents.size(),
                           int{Shape::kMaxRank}));
  }
  Shape shape;
  for (const dom::element extent : extents) {
    int64_t n = 0;
    if (extent.get(n) != simdjson::SUCCESS || n < 0) {
      place.fail(fmt::format("shape {} has an extent that is not a whole number from 0",
                             json_text(value)));
    }
    shape.push_back(n);
  }
  return shape;
}

// Bytes of a dense tensor, or nothing when the product leaves 62 bits.
std::optional<uint64_t> dense_bytes(const Shape& shape, DType dtype) {
  uint64_t bytes = static_cast<uint64_t>(bytes_of(dtype));
  for (int i = 0; i < shape.rank(); ++i) {
    if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(shape[i]), &bytes)) {
      return std::nullopt;
    }
  }
  return bytes <= kMaxDataBytes ? std::optional(bytes) : std::nullopt;
}

void read_offsets(const dom::element& value, HeaderTensor& tensor, const Place& place) {
  dom::array pair;
  uint64_t ends[2] = {};
  bool good = value.get(pair) == simdjson::SUCCESS && pair.size() == 2;
  size_t i = 0;
  if (good) {
    for (const dom::element offset : pair) {
      good = good && offset.get(ends[i++]) == simdjson::SUCCESS;
    }
  }
  if (!good) {
    place.fail(
        fmt::format("data_offsets is {}, expected two whole numbers from 0", json_text(value)));
  }
  if (ends[0] > ends[1] || ends[1] > kMaxDataBytes) {
    place.fail(
        fmt::format("data_offsets [{}, {}] is not a range within 2^62 bytes", ends[0], ends[1]));
  }
  tensor.begin = ends[0];
  tensor.end = ends[1];
}

HeaderTensor read_tensor(const dom::element& value, const Place& place) {
  dom::object fields;
  if (value.get(fields) != simdjson::SUCCESS) {
    place.fail(fmt::format("is {}, expected an object", json_text(value)));
  }
  HeaderTensor tensor;
  bool has_dtype = false;
  bool has_shape = false;
  bool has_offsets = false;
  for (const dom::key_value_pair field : fields) {
    bool* seen = field.key == "dtype"          ? &has_dtype
                 : field.key == "shape"        ? &has_shape
                 : field.key == "data_offsets" ? &has_offsets
                                               : nullptr;
    if (seen == nullptr) place.fail(fmt::format("unknown field \"{}\"", printable_name(field.key)));
    if (*seen) place.fail(fmt::format("field \"{}\" is given twice", field.key));
    *seen = true;
    if (seen == &has_dtype) tensor.dtype = read_dtype(field.value, place);
    if (seen == &has_shape) tensor.shape = read_shape(field.value, place);
    if (seen == &has_offsets) read_offsets(field.value, tensor, place);
  }
  if (!has_dtype) place.fail("has no dtype");
  if (!has_shape) place.fail("has no shape");
  if (!has_offsets) place.fail("has no data_offsets");

  const std::optional<uint64_t> bytes = dense_bytes(tensor.shape, tensor.dtype);
  if (!bytes || *bytes != tensor.end - tensor.begin) {
    place.fail(fmt::format("{} {} needs {} bytes, data_offsets [{}, {}] hold {}",
                           info(tensor.dtype).safetensors, to_string(tensor.shape),
                           bytes ? std::to_string(*bytes) : "over 2^62", tensor.begin, tensor.end,
                           tensor.end - tensor.begin));
  }
  return tensor;
}

void check_metadata(const dom::element& value, const Place& place) {
  dom::object entries;
  if (value.is_null()) return;
  if (value.get(entries) != simdjson::SUCCESS) {
    place.fail(fmt::format("__metadata__ is {}, expected an object", json_text(value)));
  }
}

void check_names(const std::vector<HeaderTensor>& tensors, const Place& place) {
  std::unordered_set<std::string_view> seen;
  seen.reserve(tensors.size());
  for (const HeaderTensor& tensor : tensors) {
    if (!seen.insert(tensor.name).second) {
      place.fail(
          fmt::format("duplicate tensor name \"{}\" in the header", printable_name(tensor.name)));
    }
  }
}

// Requires tensors sorted by offset.
void check_ranges(const std::vector<HeaderTensor>& tensors, const Place& place) {
  uint64_t end = 0;
  const HeaderTensor* last = nullptr;
  for (const HeaderTensor& tensor : tensors) {
    if (tensor.begin < end) {
      place.fail(fmt::format("tensors \"{}\" and \"{}\" overlap: [{}, {}] and [{}, {}]",
                             printable_name(last->name), printable_name(tensor.name), last->begin,
                             last->end, tensor.begin, tensor.end));
    }
    if (tensor.begin > end) {
      place.fail(fmt::format("a hole of {} bytes at data offset {}, before tensor \"{}\"",
                             tensor.begin - end, end, printable_name(tensor.name)));
    }
    end = tensor.end;
    last = &tensor;
  }
}

}  // namespace

std::string_view NameArena::intern(std::string_view name) {
  if (name.empty()) return {};
  if (name.size() > left_) {
    constexpr size_t kBlock = 64 * 1024;
    blocks_.emplace_back(std::max(kBlock, name.size()));
    left_ = blocks_.back().size();
  }
  char* at = blocks_.back().data() + blocks_.back().size() - left_;
  std::memcpy(at, name.data(), name.size());
  left_ -= name.size();
  return {at, name.size()};
}

struct HeaderReader::Parser {
  dom::parser json{kMaxHeaderBytes};
  std::vector<std::byte> text;
};

HeaderReader::HeaderReader(NameArena& arena)
    : arena_(&arena), parser_(std::make_unique<Parser>()) {}

HeaderReader::~HeaderReader() = default;

SafetensorsHeader HeaderReader::read(const std::filesystem::path& file, bool may_be_cut) {
  const Place place{file, {}};
  check_fetched(file);
  const RandomAccessFile in(file);
  const uint64_t length = header_length(in, place);
  SafetensorsHeader header;
  header.header_bytes = sizeof(uint64_t) + length;

  std::vector<std::byte>& text = parser_->text;
  text.resize(length + simdjson::SIMDJSON_PADDING);
  in.read(sizeof(uint64_t), std::span(text).first(length));
  if (parser_->json.capacity() < length &&
      parser_->json.allocate(length, kMaxDepth) != simdjson::SUCCESS) {
    place.fail(fmt::format("no memory for a header of {} bytes", length));
  }
  dom::element root;
  const simdjson::error_code error =
      parser_->json.parse(reinterpret_cast<const char*>(text.data()), length, false).get(root);
  if (error != simdjson::SUCCESS) {
    place.fail(fmt::format("the header of {} bytes is not JSON: {}", length,
                           simdjson::error_message(error)));
  }
  dom::object entries;
  if (root.get(entries) != simdjson::SUCCESS) place.fail("the header is not a JSON object");

  // The shortest entry has over 40 characters: no header makes this larger than itself.
  header.tensors.reserve(std::min<size_t>(entries.size(), length / 40));
  bool metadata = false;
  for (const dom::key_value_pair entry : entries) {
    if (entry.key == "__metadata__") {
      if (std::exchange(metadata, true)) place.fail("__metadata__ is given twice");
      check_metadata(entry.value, place);
      continue;
    }
    HeaderTensor tensor = read_tensor(entry.value, {file, entry.key});
    tensor.name = arena_->intern(entry.key);
    header.tensors.push_back(tensor);
  }
  check_names(header.tensors, place);
  std::stable_sort(header.tensors.begin(), header.tensors.end(), [](const auto& a, const auto& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  });
  check_ranges(header.tensors, place);
  header.data_bytes = header.tensors.empty() ? 0 : header.tensors.back().end;

  const uint64_t found = in.size() - header.header_bytes;
  if (found > header.data_bytes) {
    place.fail(fmt::format("{} bytes after the last tensor: expected a file of {} bytes, found {}",
                           found - header.data_bytes, header.header_bytes + header.data_bytes,
                           in.size()));
  }
  if (found < header.data_bytes && !may_be_cut) {
    throw_error(Code::BadInput,
                fmt::format("{} is truncated: expected {} bytes, found {}", file.string(),
                            header.header_bytes + header.data_bytes, in.size()),
                refetch_hint(file, "download the file again"));
  }
  return header;
}

}  // namespace octet
