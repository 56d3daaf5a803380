#pragma once
// What the fuzz targets share: refusals are fine, bugs are not, and files that live in memory.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/error.h"

namespace octet {

// Runs `act`; an Error is an answer, unless it says that a promise of ours was broken.
template <class Act>
void expect_no_bug(const Act& act) {
  try {
    act();
  } catch (const Error& error) {
    if (error.code() == Code::Bug) std::abort();
  }
}

// A file in memory that can be opened by its path, whole of the bytes last given to it.
class MemoryFile {
 public:
  explicit MemoryFile(const char* name) : fd_(::memfd_create(name, 0)) {
    if (fd_ < 0) std::abort();
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile() { ::close(fd_); }

  std::filesystem::path path() const { return "/proc/self/fd/" + std::to_string(fd_); }

  void assign(const void* data, size_t size) const {
    if (::ftruncate(fd_, 0) != 0) std::abort();
    if (::pwrite(fd_, data, size, 0) != static_cast<ssize_t>(size)) std::abort();
  }

 private:
  int fd_;
};

// An empty folder of this process, removed at its end.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "octet-fuzz-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    path_ = name;
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace octet
