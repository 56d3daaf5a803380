#include "base/atomic_folder.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "base/error.h"

namespace octet {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void throw_environment(std::string_view verb, const fs::path& path,
                                    const std::string& reason) {
  throw_error(Code::Environment, fmt::format("cannot {} {}: {}", verb, path.string(), reason),
              "check the space and the permissions of the disk");
}

// Flushes a folder's own entries, so that a rename survives a power cut. File systems that cannot
// are not an error.
void sync_folder(const fs::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  ::fsync(fd);
  ::close(fd);
}

fs::path parent_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

// "name" without a trailing slash, which would make the file name empty.
fs::path without_slash(const fs::path& path) {
  return path.has_filename() || !path.has_relative_path() ? path : path.parent_path();
}

// A sibling of `target`: rename only works inside one file system.
fs::path sibling(const fs::path& target, std::string_view word) {
  return parent_of(target) / fmt::format(".{}.{}-{}", target.filename().string(), word, ::getpid());
}

}  // namespace

AtomicFolder::AtomicFolder(const fs::path& target, Existing existing)
    : target_(without_slash(target)), existing_(existing) {
  if (!target_.has_filename() || target_.filename() == "." || target_.filename() == "..") {
    throw_error(Code::BadInput, fmt::format("output folder \"{}\" has no name", target_.string()),
                "name a folder that is not there yet, or an empty one");
  }
  std::error_code error;
  const fs::file_status status = fs::status(target_, error);
  if (fs::exists(status) && !fs::is_directory(status)) {
    throw_error(Code::BadInput,
                fmt::format("output {} is a file, expected a folder", target_.string()),
                "name another folder, or remove the file first");
  }
  if (fs::is_directory(status) && existing == Existing::Refuse && !fs::is_empty(target_, error)) {
    throw_error(Code::BadInput,
                fmt::format("output folder {} exists and is not empty", target_.string()),
                "name another folder, or remove this one first");
  }
  const fs::path parent = parent_of(target_);
  if (!fs::is_directory(parent, error)) {
    throw_error(
        Code::BadInput,
        fmt::format("output folder {}: there is no folder {}", target_.string(), parent.string()),
        fmt::format("mkdir -p '{}', or name a folder that is there", parent.string()));
  }
  const fs::path work = sibling(target_, "partial");
  fs::remove_all(work, error);
  if (!fs::create_directory(work, error)) {
    throw_environment("make", work, error ? error.message() : "it exists");
  }
  work_ = work;
}

AtomicFolder::AtomicFolder(AtomicFolder&& other) noexcept
    : target_(std::move(other.target_)),
      work_(std::exchange(other.work_, fs::path())),
      existing_(other.existing_) {}

AtomicFolder::~AtomicFolder() {
  std::error_code ignored;
  if (!work_.empty()) fs::remove_all(work_, ignored);
}

void AtomicFolder::commit() {
  OCTET_CHECK(!work_.empty(), "commit of {} twice", target_.string());
  sync_folder(work_);
  std::error_code error;
  const fs::path old = sibling(target_, "old");
  const bool replace = existing_ == Existing::Replace && fs::exists(target_, error);
  if (replace) {
    fs::rename(target_, old, error);
    if (error) throw_environment("replace", target_, error.message());
  }
  fs::rename(work_, target_, error);  // replaces an empty folder
  if (error) {
    std::error_code ignored;
    if (replace) fs::rename(old, target_, ignored);
    throw_environment("make", target_, error.message());
  }
  work_.clear();
  sync_folder(parent_of(target_));
  if (replace) fs::remove_all(old, error);
}

}  // namespace octet
