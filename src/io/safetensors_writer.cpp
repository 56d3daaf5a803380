#include "io/safetensors_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string_view>
#include <unordered_map>

#include "base/error.h"

namespace octet {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors is little-endian");

// The order of the safetensors library (serialize in safetensors/src/tensor.rs).
bool comes_first(const TensorSpec& a, const TensorSpec& b) {
  if (bytes_of(a.dtype) != bytes_of(b.dtype)) return bytes_of(a.dtype) > bytes_of(b.dtype);
  return a.name < b.name;
}

uint64_t bytes_of_tensor(const TensorSpec& tensor) {
  uint64_t bytes = static_cast<uint64_t>(bytes_of(tensor.dtype));
  for (int i = 0; i < tensor.shape.rank(); ++i) {
    OCTET_CHECK(tensor.shape[i] >= 0 &&
                    !__builtin_mul_overflow(bytes, static_cast<uint64_t>(tensor.shape[i]), &bytes),
                "{} {}", tensor.name, to_string(tensor.shape));
  }
  return bytes;
}

// A JSON string. The library writes the header as serde_json does: no spaces, UTF-8 as it is.
std::string quoted(const std::string& text) {
  try {
    return nlohmann::json(text).dump();
  } catch (const nlohmann::json::exception&) {
    throw_error(Code::BadInput, "a tensor or metadata name is not UTF-8");
  }
}

}  // namespace

struct SafetensorsWriter::Impl {
  struct Slot {
    uint64_t offset = 0;  // in the file
    uint64_t bytes = 0;
    uint64_t written = 0;
  };

  std::filesystem::path path;
  int fd = -1;
  bool finished = false;
  uint64_t file_bytes = 0;
  std::unordered_map<std::string, Slot> slots;

  ~Impl() {
    if (fd >= 0) ::close(fd);
    if (!finished && fd >= 0) ::unlink(path.c_str());
  }

  [[noreturn]] void fail(int error) const {
    if (error == EFAULT) {  // the system read them for us: no SIGBUS
      throw_error(Code::Environment,
                  fmt::format("cannot write {}: the file that its values come from became shorter, "
                              "or its disk failed",
                              path.string()),
                  "try again when nothing writes to the file");
    }
    throw_error(Code::Environment,
                fmt::format("cannot write {}: {} ({} bytes needed)", path.string(),
                            std::strerror(error), file_bytes),
                "check the space and the permissions of the disk, or write to another one");
  }

  std::string make_header(std::vector<TensorSpec>& tensors,
                          std::span<const std::pair<std::string, std::string>> metadata);
  void create();
  void write_at(uint64_t offset, std::span<const std::byte> bytes) const;
};

// Lays out the tensors and returns length and JSON, padded with spaces so that data is aligned.
std::string SafetensorsWriter::Impl::make_header(
    std::vector<TensorSpec>& tensors,
    std::span<const std::pair<std::string, std::string>> metadata) {
  std::sort(tensors.begin(), tensors.end(), comes_first);
  std::string json = "{";
  if (!metadata.empty()) {
    json += "\"__metadata__\":{";
    for (const auto& [key, value] : metadata) {
      json += fmt::format("{}{}:{}", json.back() == '{' ? "" : ",", quoted(key), quoted(value));
    }
    json += '}';
  }
  uint64_t end = 0;
  for (const TensorSpec& tensor : tensors) {
    const uint64_t bytes = bytes_of_tensor(tensor);
    if (tensor.name == "__metadata__" || !slots.emplace(tensor.name, Slot{end, bytes}).second) {
      throw_error(Code::BadInput, fmt::format("{}: tensor name \"{}\" is given twice or reserved",
                                              path.string(), tensor.name));
    }
    std::string shape;
    for (int i = 0; i < tensor.shape.rank(); ++i) {
      shape += fmt::format("{}{}", i == 0 ? "" : ",", tensor.shape[i]);
    }
    json += fmt::format(R"({}{}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                        json.size() == 1 ? "" : ",", quoted(tensor.name),
                        info(tensor.dtype).safetensors, shape, end, end + bytes);
    end += bytes;
  }
  json += '}';
  json.resize((json.size() + 7) / 8 * 8, ' ');

  const uint64_t length = json.size();
  std::string header(sizeof length, '\0');
  std::memcpy(header.data(), &length, sizeof length);
  header += json;
  for (auto& [name, slot] : slots) slot.offset += header.size();
  file_bytes = header.size() + end;
  return header;
}

// Reserves the whole file first: a disk that is too small fails before hours of work.
void SafetensorsWriter::Impl::create() {
  fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0) fail(errno);
  int result = 0;
  do {
    result = ::fallocate(fd, 0, 0, static_cast<off_t>(file_bytes));
  } while (result != 0 && errno == EINTR);
  if (result != 0 && errno != EOPNOTSUPP && errno != ENOSYS) fail(errno);
}

void SafetensorsWriter::Impl::write_at(uint64_t offset, std::span<const std::byte> bytes) const {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n =
        ::pwrite(fd, bytes.data() + done, bytes.size() - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) fail(n == 0 ? ENOSPC : errno);
    done += static_cast<size_t>(n);
  }
}

SafetensorsWriter::SafetensorsWriter(std::filesystem::path path, std::vector<TensorSpec> tensors,
                                     std::span<const std::pair<std::string, std::string>> metadata)
    : impl_(std::make_unique<Impl>()) {
  impl_->path = std::move(path);
  const std::string header = impl_->make_header(tensors, metadata);
  impl_->create();
  impl_->write_at(0, std::as_bytes(std::span(header)));
}

SafetensorsWriter::SafetensorsWriter(SafetensorsWriter&&) noexcept = default;
SafetensorsWriter::~SafetensorsWriter() = default;

void SafetensorsWriter::write(std::string_view name, std::span<const std::byte> bytes) {
  const auto it = impl_->slots.find(std::string(name));
  OCTET_CHECK(it != impl_->slots.end(), "tensor \"{}\" of {}", name, impl_->path.string());
  Impl::Slot& slot = it->second;
  OCTET_CHECK(bytes.size() <= slot.bytes - slot.written, "tensor \"{}\": {} + {} of {} bytes", name,
              slot.written, bytes.size(), slot.bytes);
  impl_->write_at(slot.offset + slot.written, bytes);
  slot.written += bytes.size();
}

void SafetensorsWriter::finish() {
  for (const auto& [name, slot] : impl_->slots) {
    OCTET_CHECK(slot.written == slot.bytes, "tensor \"{}\" has {} of {} bytes", name, slot.written,
                slot.bytes);
  }
  if (::fsync(impl_->fd) != 0) impl_->fail(errno);
  const int fd = std::exchange(impl_->fd, -1);
  if (::close(fd) != 0) {
    const int error = errno;
    ::unlink(impl_->path.c_str());
    impl_->fail(error);
  }
  impl_->finished = true;
}

uint64_t SafetensorsWriter::file_bytes() const {
  return impl_->file_bytes;
}

}  // namespace octet
