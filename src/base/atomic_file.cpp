#include "base/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "base/error.h"

namespace octet {
namespace {

namespace fs = std::filesystem;

// Writes `text` to a file opened with `flags`, flushed to the disk where that means anything.
void write_opened(const fs::path& path, std::string_view text, int flags) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | flags, 0666);
  int error = fd < 0 ? errno : 0;
  while (!text.empty() && error == 0) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n >= 0) {
      text.remove_prefix(static_cast<size_t>(n));
    } else if (errno != EINTR) {
      error = errno;
    }
  }
  // Devices and pipes have nothing to flush.
  if (error == 0 && ::fsync(fd) != 0 && errno != EINVAL && errno != EROFS) error = errno;
  if (fd >= 0 && ::close(fd) != 0 && error == 0) error = errno;
  if (error != 0) {
    throw_error(Code::Environment,
                fmt::format("cannot write {}: {}", path.string(), std::strerror(error)),
                "check the space and the permissions of the disk");
  }
}

// True for what must stay where it is: all but regular files, and the names of open files such as
// /dev/stdout, behind which a regular file may lie that others are writing to.
bool stays(const fs::path& path, const fs::file_status& status) {
  if (!fs::exists(status)) return false;
  const std::string name = path.lexically_normal().string();
  return !fs::is_regular_file(status) || name == "/dev/stdout" || name == "/dev/stderr" ||
         name.starts_with("/dev/fd/") || name.starts_with("/proc/");
}

// An empty file that only its owner can read.
void make_private(const fs::path& path) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd >= 0) ::close(fd);  // else writing to it says why
}

}  // namespace

void write_file(const fs::path& path, std::string_view text) {
  write_opened(path, text, O_CREAT | O_TRUNC);
}

void replace_file(const fs::path& path, std::string_view text) {
  std::error_code error;
  if (fs::is_directory(path, error)) {
    throw_error(Code::BadInput, fmt::format("{} is a folder, expected a file", path.string()),
                "name a file in it");
  }
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  if (!fs::is_directory(folder, error)) {
    throw_error(Code::BadInput,
                fmt::format("{}: there is no folder {}", path.string(), folder.string()),
                "make the folder first");
  }
  const fs::file_status status = fs::status(path, error);
  if (stays(path, status)) {
    write_opened(path, text, O_APPEND);
    return;
  }
  // Beside the target: renaming does not cross file systems. A link keeps pointing to its file.
  const fs::path target = fs::is_symlink(path, error) ? fs::weakly_canonical(path, error) : path;
  fs::path work = target;
  work += fmt::format(".part-{}", ::getpid());
  try {
    if (fs::exists(status)) make_private(work);  // nobody reads it who could not read the old one
    write_file(work, text);
    if (fs::exists(status)) fs::permissions(work, status.permissions());
    fs::rename(work, target);
  } catch (const fs::filesystem_error& e) {
    fs::remove(work, error);
    throw_error(Code::Environment,
                fmt::format("cannot write {}: {}", path.string(), e.code().message()),
                "check the permissions of the folder");
  } catch (const Error&) {
    fs::remove(work, error);
    throw;
  }
}

}  // namespace octet
