#pragma once
// Read-only files: mapped whole, or read in part.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace octet {

// A whole file mapped read-only; move-only. Pages are the page cache's: nothing is copied, and the
// bytes stay valid as long as the object. Reading what is no longer there, because the file became
// shorter or its disk went away, raises SIGBUS; mapped_path() then says of which file.
class MappedFile {
 public:
  MappedFile() = default;
  // Throws BadInput when there is no such regular file, Environment when it cannot be read.
  explicit MappedFile(const std::filesystem::path& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

// The path of the file mapped at `address`, fit for a terminal; null when none of the first 1024
// maps has it. Async-signal-safe: for a handler of SIGBUS.
const char* mapped_path(const void* address) noexcept;

// A regular file open for reading at any offset; move-only.
class RandomAccessFile {
 public:
  // Throws as MappedFile does.
  explicit RandomAccessFile(const std::filesystem::path& path);
  RandomAccessFile(RandomAccessFile&& other) noexcept;
  RandomAccessFile& operator=(RandomAccessFile&& other) noexcept;
  RandomAccessFile(const RandomAccessFile&) = delete;
  RandomAccessFile& operator=(const RandomAccessFile&) = delete;
  ~RandomAccessFile();

  uint64_t size() const { return size_; }
  // Fills `out` from `offset`. Throws Environment when the file ends before or the disk fails.
  void read(uint64_t offset, std::span<std::byte> out) const;

 private:
  std::filesystem::path path_;
  int fd_ = -1;
  uint64_t size_ = 0;
};

// False when nothing has this name. A link that leads nowhere and a file that may not be read are
// there: opening them says what is wrong.
bool is_there(const std::filesystem::path& path) noexcept;

// All of a text file. Throws BadInput when it is absent or larger than `max_bytes`, Environment
// when it cannot be read.
std::string read_text_file(const std::filesystem::path& path, uint64_t max_bytes);

}  // namespace octet
