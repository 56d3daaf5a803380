#include "base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/printable.h"

namespace octet {
namespace {

// What to do about an error of open(), stat(), mmap() or read().
std::string_view next_step(int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
    case ENAMETOOLONG:
      return "check the spelling of the path";
    case ELOOP:
      return "its symbolic links lead in a circle: name the file that they were to lead to";
    case ENOMEM:
      return "free memory, or raise the limit of address space (ulimit -v)";
    case EMFILE:
    case ENFILE:
      return "raise the limit of open files (ulimit -n)";
    case EACCES:
    case EPERM:
      return "check the permissions of the file and of its folder";
    default:
      return "check the disk, and the permissions of the file and of its folder";
  }
}

[[noreturn]] void throw_errno(const std::filesystem::path& path, std::string_view verb, int error) {
  const bool absent = error == ENOENT || error == ENOTDIR || error == ENAMETOOLONG;
  std::error_code no_link;
  const std::filesystem::path target = std::filesystem::read_symlink(path, no_link);
  if (error == ENOENT && !no_link) {
    throw_error(Code::BadInput,
                fmt::format("cannot {} {}: it is a link to {}, which is not there", verb,
                            path.string(), printable_line(target.string())),
                "restore what the link leads to, or download the file again");
  }
  throw_error(absent ? Code::BadInput : Code::Environment,
              fmt::format("cannot {} {}: {}", verb, path.string(), std::strerror(error)),
              std::string(next_step(error)));
}

// A descriptor of a regular file and its size. The stat comes first: opening a pipe would block.
std::pair<int, uint64_t> open_regular(const std::filesystem::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) throw_errno(path, "open", errno);
  if (!S_ISREG(status.st_mode)) {
    throw_error(Code::BadInput, fmt::format("{} is not a regular file", path.string()),
                "name a file; what comes from a pipe is saved to one first");
  }
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) throw_errno(path, "open", errno);
  if (::fstat(fd, &status) != 0) {
    const int error = errno;
    ::close(fd);
    throw_errno(path, "open", error);
  }
  return {fd, static_cast<uint64_t>(status.st_size)};
}

// Maps that are alive, for mapped_path(). A slot is written under the mutex and read without: first
// the fields, then `data` makes them visible.
struct MapSlot {
  std::atomic<const std::byte*> data{nullptr};
  std::atomic<size_t> size{0};
  std::atomic<char*> path{nullptr};
};
constexpr size_t kMapSlots = 1024;
std::array<MapSlot, kMapSlots> g_maps;
std::mutex g_maps_mutex;

void remember_map(const std::byte* data, size_t size, const std::filesystem::path& path) {
  const std::lock_guard lock(g_maps_mutex);
  for (MapSlot& slot : g_maps) {
    if (slot.data != nullptr) continue;
    slot.size = size;
    slot.path = ::strdup(printable_line(path.string()).c_str());
    slot.data = data;
    return;
  }
}

void forget_map(const std::byte* data) {
  const std::lock_guard lock(g_maps_mutex);
  for (MapSlot& slot : g_maps) {
    if (slot.data != data) continue;
    slot.data = nullptr;
    std::free(slot.path.exchange(nullptr));
    return;
  }
}

}  // namespace

const char* mapped_path(const void* address) noexcept {
  const auto* at = static_cast<const std::byte*>(address);
  for (const MapSlot& slot : g_maps) {
    const std::byte* data = slot.data;
    // Pages, not bytes: the last one is mapped whole.
    constexpr size_t kPage = 4096;
    if (data != nullptr && at >= data && at < data + (slot.size + kPage - 1) / kPage * kPage) {
      return slot.path;
    }
  }
  return nullptr;
}

MappedFile::MappedFile(const std::filesystem::path& path) {
  const auto [fd, size] = open_regular(path);
  if (size != 0) {
    void* data = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, 0);
    const int error = errno;
    ::close(fd);
    if (data == MAP_FAILED) throw_errno(path, "map", error);
    data_ = static_cast<const std::byte*>(data);
    size_ = size;
    remember_map(data_, size_, path);
  } else {
    ::close(fd);
  }
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ == nullptr) return;
  forget_map(data_);
  ::munmap(const_cast<std::byte*>(data_), size_);
}

RandomAccessFile::RandomAccessFile(const std::filesystem::path& path) : path_(path) {
  std::tie(fd_, size_) = open_regular(path);
}

RandomAccessFile::RandomAccessFile(RandomAccessFile&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)), size_(other.size_) {}

RandomAccessFile& RandomAccessFile::operator=(RandomAccessFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  std::swap(size_, other.size_);
  return *this;
}

RandomAccessFile::~RandomAccessFile() {
  if (fd_ >= 0) ::close(fd_);
}

void RandomAccessFile::read(uint64_t offset, std::span<std::byte> out) const {
  size_t done = 0;
  while (done < out.size()) {
    const ssize_t n =
        ::pread(fd_, out.data() + done, out.size() - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw_errno(path_, "read", errno);
    if (n == 0) {
      throw_error(Code::Environment,
                  fmt::format("{} ends at byte {}, expected {} bytes at {}", path_.string(),
                              offset + done, out.size(), offset),
                  "the file became shorter while it was read: try again when nothing writes to it");
    }
    done += static_cast<size_t>(n);
  }
}

bool is_there(const std::filesystem::path& path) noexcept {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

std::string read_text_file(const std::filesystem::path& path, uint64_t max_bytes) {
  const RandomAccessFile file(path);
  if (file.size() > max_bytes) {
    throw_error(
        Code::BadInput,
        fmt::format("{} has {} bytes, expected at most {}", path.string(), file.size(), max_bytes),
        "check that this is the right file");
  }
  std::string text(file.size(), '\0');
  file.read(0, std::as_writable_bytes(std::span(text)));
  return text;
}

}  // namespace octet
