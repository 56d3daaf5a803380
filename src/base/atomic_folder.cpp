#include "base/atomic_folder.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <system_error>
#include <utility>
#include <vector>

#include "base/error.h"

namespace octet {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPartial = "partial";

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

// Opens a work folder and takes its lock, which its process holds as long as it lives. -1 when
// another one has it, or the file system has no locks.
int lock_folder(const fs::path& work) {
  const int fd = ::open(work.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0 || ::flock(fd, LOCK_EX | LOCK_NB) == 0) return fd;
  ::close(fd);
  return -1;
}

// Removes the work folders of `target` whose processes are no more. A process of another container
// or machine has a number that says nothing here: its lock does.
void remove_left_over(const fs::path& target) {
  const std::string begin = fmt::format(".{}.{}-", target.filename().string(), kPartial);
  std::vector<fs::path> dead;
  std::error_code error;
  for (fs::directory_iterator it(parent_of(target), error), end; !error && it != end;
       it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (!name.starts_with(begin)) continue;
    pid_t process = 0;
    const char* last = name.data() + name.size();
    const auto read = std::from_chars(name.data() + begin.size(), last, process);
    if (read.ec != std::errc{} || read.ptr != last || process <= 0) continue;
    if (::kill(process, 0) != 0 && errno == ESRCH) dead.push_back(it->path());
  }
  for (const fs::path& path : dead) {
    const int lock = lock_folder(path);
    if (lock < 0) continue;
    fs::remove_all(path, error);
    ::close(lock);
  }
}

// Work folders that are alive, for remove_unfinished_folders(); more than these are left to the
// next run.
std::array<std::atomic<char*>, 16> g_work;
std::mutex g_work_mutex;

void remember(const fs::path& work) {
  const std::lock_guard lock(g_work_mutex);
  for (std::atomic<char*>& slot : g_work) {
    if (slot != nullptr) continue;
    slot = ::strdup(work.c_str());
    return;
  }
}

void forget(const fs::path& work) {
  const std::lock_guard lock(g_work_mutex);
  for (std::atomic<char*>& slot : g_work) {
    if (slot == nullptr || work != fs::path(slot.load())) continue;
    std::free(slot.exchange(nullptr));
    return;
  }
}

// With system calls alone: readdir() takes memory.
void remove_flat_folder(const char* path) noexcept {
  struct Entry {  // linux_dirent64, whose name follows
    uint64_t inode;
    int64_t offset;
    uint16_t size;
    uint8_t type;
    char name[1];
  };
  const int fd = ::open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  alignas(Entry) std::array<char, 4096> entries;
  while (true) {
    const long read = ::syscall(SYS_getdents64, fd, entries.data(), entries.size());
    if (read <= 0) break;
    for (long at = 0; at < read;) {
      const auto* entry = reinterpret_cast<const Entry*>(entries.data() + at);
      ::unlinkat(fd, entry->name, 0);  // fails for "." and ".."
      at += entry->size;
    }
  }
  ::close(fd);
  ::rmdir(path);
}

}  // namespace

void remove_unfinished_folders() noexcept {
  for (const std::atomic<char*>& slot : g_work) {
    if (const char* path = slot) remove_flat_folder(path);
  }
}

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
  remove_left_over(target_);
  const fs::path work = sibling(target_, kPartial);
  fs::remove_all(work, error);
  if (!fs::create_directory(work, error)) {
    throw_environment("make", work, error ? error.message() : "it exists");
  }
  work_ = work;
  lock_ = lock_folder(work_);
  remember(work_);
}

AtomicFolder::AtomicFolder(AtomicFolder&& other) noexcept
    : target_(std::move(other.target_)),
      work_(std::exchange(other.work_, fs::path())),
      lock_(std::exchange(other.lock_, -1)),
      existing_(other.existing_) {}

AtomicFolder::~AtomicFolder() {
  if (!work_.empty()) {
    std::error_code ignored;
    fs::remove_all(work_, ignored);
    forget(work_);
  }
  if (lock_ >= 0) ::close(lock_);
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
  forget(work_);
  work_.clear();
  sync_folder(parent_of(target_));
  if (replace) fs::remove_all(old, error);
}

}  // namespace octet
