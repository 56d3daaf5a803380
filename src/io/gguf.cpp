#include "io/gguf.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <unordered_set>

#include "base/error.h"
#include "base/plural.h"
#include "base/printable.h"
#include "io/hub_cache.h"

namespace octet {
namespace {

static_assert(std::endian::native == std::endian::little, "GGUF is read as little-endian");

// Type numbers of metadata values (docs/gguf.md, gguf_metadata_value_type).
enum class Kind : uint32_t {
  U8 = 0,
  I8 = 1,
  U16 = 2,
  I16 = 3,
  U32 = 4,
  I32 = 5,
  F32 = 6,
  Bool = 7,
  String = 8,
  Array = 9,
  U64 = 10,
  I64 = 11,
  F64 = 12,
};

// Extents of a tensor (ggml.h, GGML_MAX_DIMS).
constexpr uint32_t kMaxRank = 4;
constexpr uint64_t kDefaultAlignment = 32;
constexpr uint64_t kMaxAlignment = 1U << 20;
constexpr uint64_t kMaxBytes = uint64_t{1} << 62;
// The least bytes that a value (length, type, one byte) and a tensor (length, rank, type, offset)
// take: what counts are checked against before room is made.
constexpr uint64_t kLeastValueBytes = 8 + 4 + 1;
constexpr uint64_t kLeastTensorBytes = 8 + 4 + 4 + 8;

// Bytes read in order; every read is checked.
class Cursor {
 public:
  Cursor(std::span<const std::byte> file, std::string_view where) : file_(file), where_(where) {}

  uint64_t at() const { return at_; }
  uint64_t left() const { return file_.size() - at_; }

  // What is being read now, for messages.
  void name(std::string_view subject) { subject_ = subject; }

  [[noreturn]] void fail(const std::string& what, std::string hint = {}) const {
    const std::string subject =
        subject_.empty() ? std::string() : fmt::format("\"{}\": ", printable_name(subject_));
    throw_error(Code::BadInput, fmt::format("{}: {}{}", where_, subject, what), std::move(hint));
  }

  // What to do about a file that is shorter than it says.
  std::string cut_hint() const {
    return refetch_hint(where_, "the file is damaged or cut short: download it again");
  }

  std::span<const std::byte> take(uint64_t bytes) {
    if (bytes > left()) {
      fail(fmt::format("is truncated: {} needed at byte {}, the file has {}",
                       counted(bytes, "byte"), at_, file_.size()),
           cut_hint());
    }
    const auto taken = file_.subspan(at_, bytes);
    at_ += bytes;
    return taken;
  }

  template <class T>
  T scalar() {
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }

  std::string_view string() {
    const auto bytes = take(scalar<uint64_t>());
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  // A count of things that take at least `least` bytes each.
  uint64_t count(std::string_view what, uint64_t least) {
    const auto n = scalar<uint64_t>();
    if (n > left() / least) {
      fail(fmt::format("states {} {}, which the {} bytes left cannot hold", n, what, left()),
           cut_hint());
    }
    return n;
  }

 private:
  std::span<const std::byte> file_;
  std::string_view where_;
  std::string_view subject_;
  uint64_t at_ = 0;
};

int64_t signed_of(uint64_t value, const Cursor& in) {
  if (value > INT64_MAX) in.fail(fmt::format("{} is larger than any count", value));
  return static_cast<int64_t>(value);
}

bool read_bool(Cursor& in) {
  const auto byte = in.scalar<uint8_t>();
  if (byte > 1) in.fail(fmt::format("a bool is {}, expected 0 or 1", byte));
  return byte == 1;
}

// Calls `use` with a function that reads one value of `kind`; false for kinds that are no scalar.
template <class Use>
bool with_scalar_reader(Kind kind, Cursor& in, Use&& use) {
  const auto integer = [&](auto type) {
    use([&in] { return static_cast<int64_t>(in.scalar<decltype(type)>()); });
    return true;
  };
  switch (kind) {
    case Kind::U8:
      return integer(uint8_t{});
    case Kind::I8:
      return integer(int8_t{});
    case Kind::U16:
      return integer(uint16_t{});
    case Kind::I16:
      return integer(int16_t{});
    case Kind::U32:
      return integer(uint32_t{});
    case Kind::I32:
      return integer(int32_t{});
    case Kind::I64:
      return integer(int64_t{});
    case Kind::U64:
      use([&in] { return signed_of(in.scalar<uint64_t>(), in); });
      return true;
    case Kind::F32:
      use([&in] { return static_cast<double>(in.scalar<float>()); });
      return true;
    case Kind::F64:
      use([&in] { return in.scalar<double>(); });
      return true;
    case Kind::Bool:
      use([&in] { return read_bool(in); });
      return true;
    case Kind::String:
      use([&in] { return in.string(); });
      return true;
    case Kind::Array:
      return false;
  }
  return false;
}

uint64_t least_bytes(Kind kind) {
  switch (kind) {
    case Kind::U8:
    case Kind::I8:
    case Kind::Bool:
      return 1;
    case Kind::U16:
    case Kind::I16:
      return 2;
    case Kind::U32:
    case Kind::I32:
    case Kind::F32:
      return 4;
    case Kind::U64:
    case Kind::I64:
    case Kind::F64:
    case Kind::String:  // its length
      return 8;
    case Kind::Array:
      return 12;
  }
  return 1;
}

Kind read_kind(Cursor& in) {
  const auto number = in.scalar<uint32_t>();
  if (number > static_cast<uint32_t>(Kind::F64)) {
    in.fail(fmt::format("has the unknown value type {}, expected 0 to 12", number));
  }
  return static_cast<Kind>(number);
}

template <class Item>
struct ArrayOf;
template <>
struct ArrayOf<int64_t> {
  using Type = GgufIntegers;
};
template <>
struct ArrayOf<double> {
  using Type = GgufNumbers;
};
template <>
struct ArrayOf<bool> {
  using Type = GgufBools;
};
template <>
struct ArrayOf<std::string_view> {
  using Type = GgufStrings;
};

GgufValue read_array(Cursor& in) {
  const Kind kind = read_kind(in);
  const uint64_t count = in.count("array items", least_bytes(kind));
  GgufValue value;
  const bool scalars = with_scalar_reader(kind, in, [&](auto&& next) {
    using Item = decltype(next());
    typename ArrayOf<Item>::Type items;
    items.reserve(count);
    for (uint64_t i = 0; i < count; ++i) {
      items.push_back(static_cast<typename decltype(items)::value_type>(next()));
    }
    value = std::move(items);
  });
  if (!scalars) in.fail("is an array of arrays, which is not supported");
  return value;
}

GgufValue read_value(Cursor& in) {
  const Kind kind = read_kind(in);
  GgufValue value;
  const bool scalar = with_scalar_reader(kind, in, [&](auto&& next) { value = next(); });
  return scalar ? value : read_array(in);
}

void read_version(Cursor& in, GgufHeader& header) {
  const auto magic = in.take(4);
  if (std::memcmp(magic.data(), "GGUF", 4) != 0) {
    const std::string_view found(reinterpret_cast<const char*>(magic.data()), magic.size());
    in.fail(fmt::format("begins with \"{}\", expected \"GGUF\"", printable_name(found)),
            "name a GGUF file");
  }
  header.version = in.scalar<uint32_t>();
  if (__builtin_bswap32(header.version) == 2 || __builtin_bswap32(header.version) == 3) {
    in.fail("is a big-endian GGUF, expected a little-endian one",
            "download the file that is not called big-endian, or convert the model again");
  }
  if (header.version != 2 && header.version != 3) {
    in.fail(fmt::format("is GGUF of version {}, expected 2 or 3", header.version),
            "convert the model again with a current llama.cpp");
  }
}

// Bytes of whole blocks; nothing past 62 bits.
std::optional<uint64_t> bytes_of_blocks(const Shape& shape, const GgufTensorType& type) {
  uint64_t n = type.block_bytes;
  for (int i = 0; i < shape.rank(); ++i) {
    const auto extent = static_cast<uint64_t>(shape[i]);
    const bool last = i + 1 == shape.rank();
    if (__builtin_mul_overflow(n, last ? extent / type.block_elements : extent, &n) ||
        n > kMaxBytes) {
      return std::nullopt;
    }
  }
  return n;
}

GgufTensor read_tensor(Cursor& in) {
  GgufTensor tensor;
  tensor.name = in.string();
  in.name(tensor.name);
  const auto rank = in.scalar<uint32_t>();
  if (rank < 1 || rank > kMaxRank) {
    in.fail(fmt::format("has {} dimensions, expected 1 to {}", rank, kMaxRank));
  }
  int64_t extents[kMaxRank] = {};
  for (uint32_t i = 0; i < rank; ++i) {
    extents[i] = signed_of(in.scalar<uint64_t>(), in);
    if (extents[i] == 0) in.fail("has a dimension of 0, expected 1 and up");
  }
  for (uint32_t i = rank; i > 0; --i) tensor.shape.push_back(extents[i - 1]);
  const auto id = in.scalar<uint32_t>();
  tensor.type = gguf_tensor_type(id);
  if (tensor.type == nullptr) {
    in.fail(fmt::format("has the unknown tensor type {}", id),
            fmt::format("types that are read: {}", gguf_decoded_names()));
  }
  if (extents[0] % tensor.type->block_elements != 0) {
    in.fail(fmt::format("rows of {} elements are not whole blocks of {} ({})", extents[0],
                        tensor.type->block_elements, tensor.type->name));
  }
  tensor.offset = in.scalar<uint64_t>();  // from the start of the data, until place() is done
  const auto bytes = bytes_of_blocks(tensor.shape, *tensor.type);
  if (!bytes) in.fail(fmt::format("{} has over 2^62 bytes", to_string(tensor.shape)));
  tensor.bytes = *bytes;
  return tensor;
}

uint64_t read_alignment(const GgufHeader& header, Cursor& in) {
  constexpr std::string_view kKey = "general.alignment";
  const auto it = header.values.find(kKey);
  if (it == header.values.end()) return kDefaultAlignment;
  in.name(kKey);
  const auto* value = std::get_if<int64_t>(&it->second);
  if (value == nullptr || *value <= 0 || *value % 8 != 0 ||
      static_cast<uint64_t>(*value) > kMaxAlignment) {
    in.fail(fmt::format("expected a multiple of 8 up to {}, got {}", kMaxAlignment,
                        value == nullptr ? "another type" : std::to_string(*value)));
  }
  in.name({});
  return static_cast<uint64_t>(*value);
}

// Requires that neither is over 2^62.
uint64_t aligned(uint64_t at, uint64_t alignment) {
  return (at + alignment - 1) / alignment * alignment;
}

// Turns offsets into ones from the start of the file, and proves that each tensor lies inside it.
// Returns where the data begins.
uint64_t place(GgufHeader& header, uint64_t alignment, uint64_t file_bytes, Cursor& in) {
  const uint64_t data = aligned(in.at(), alignment);
  for (GgufTensor& tensor : header.tensors) {
    in.name(tensor.name);
    if (tensor.offset % alignment != 0) {
      in.fail(
          fmt::format("offset {} is not a multiple of the alignment {}", tensor.offset, alignment));
    }
    if (tensor.offset > kMaxBytes || data + tensor.offset + tensor.bytes > file_bytes) {
      in.fail(fmt::format("is truncated: {} {} needs {} bytes at data offset {}, the file has {} "
                          "bytes, {} of them before the data",
                          tensor.type->name, to_string(tensor.shape), tensor.bytes, tensor.offset,
                          file_bytes, std::min(data, file_bytes)),
              in.cut_hint());
    }
    tensor.offset += data;
  }
  in.name({});
  return data;
}

std::vector<const GgufTensor*> by_offset(const GgufHeader& header) {
  std::vector<const GgufTensor*> order;
  order.reserve(header.tensors.size());
  for (const GgufTensor& tensor : header.tensors) order.push_back(&tensor);
  std::sort(order.begin(), order.end(), [](const GgufTensor* a, const GgufTensor* b) {
    return a->offset != b->offset ? a->offset < b->offset : a->bytes < b->bytes;
  });
  return order;
}

std::string described(const GgufTensor& tensor) {
  return fmt::format("\"{}\" ({} {})", printable_name(tensor.name), tensor.type->name,
                     to_string(tensor.shape));
}

// Where the data begins and ends, and to what its tensors are aligned.
struct DataRange {
  uint64_t begin, end, alignment;
};

// Tensors follow one another with nothing but padding between them and at the end: bytes that
// belong to none mean that a type or a shape is not the one that was written.
void check_layout(const GgufHeader& header, const DataRange& data, const Cursor& in) {
  uint64_t end = data.begin;  // of the padding of `last`
  const GgufTensor* last = nullptr;
  for (const GgufTensor* tensor : by_offset(header)) {
    if (last != nullptr && tensor->offset < last->offset + last->bytes) {
      in.fail(fmt::format("tensors \"{}\" and \"{}\" overlap at byte {}",
                          printable_name(last->name), printable_name(tensor->name),
                          tensor->offset));
    }
    if (tensor->offset != end) {
      in.fail(
          fmt::format("a hole of {} bytes: tensor {} begins at byte {}, expected {}, where {} ends",
                      tensor->offset - end, described(*tensor), tensor->offset, end,
                      last == nullptr ? std::string("the header") : described(*last)));
    }
    last = tensor;
    end = aligned(tensor->offset + tensor->bytes, data.alignment);
  }
  if (data.end > end) {
    in.fail(fmt::format("{} after the last tensor{}: expected a file of {} bytes, found {}",
                        counted(data.end - end, "byte"),
                        last == nullptr ? std::string() : ", " + described(*last), end, data.end));
  }
}

GgufHeader parse(std::span<const std::byte> file, std::string_view where) {
  Cursor in(file, where);
  GgufHeader header;
  read_version(in, header);
  // Counts are checked again, in their own words, against what is left when their turn comes.
  const uint64_t tensors = in.count("tensors", kLeastTensorBytes);
  const uint64_t values = in.count("values", kLeastValueBytes);
  header.values.reserve(values);
  for (uint64_t i = 0; i < values; ++i) {
    in.name({});
    const std::string_view key = in.string();
    in.name(key);
    if (!header.values.emplace(key, read_value(in)).second) in.fail("is given twice");
  }
  header.tensors.reserve(tensors);
  std::unordered_set<std::string_view> names;
  for (uint64_t i = 0; i < tensors; ++i) {
    in.name({});
    header.tensors.push_back(read_tensor(in));
    if (!names.insert(header.tensors.back().name).second) {
      in.fail("is the name of two tensors");
    }
  }
  in.name({});
  const uint64_t alignment = read_alignment(header, in);
  const uint64_t data = place(header, alignment, file.size(), in);
  check_layout(header, {data, file.size(), alignment}, in);
  return header;
}

}  // namespace

GgufHeader parse_gguf(std::span<const std::byte> file, std::string_view where) {
  try {
    return parse(file, where);
  } catch (const Error& error) {
    throw error.or_hint(refetch_hint(where, kGgufHint));
  }
}

}  // namespace octet
