#include "base/atomic_file.h"

#include <unistd.h>

#include <system_error>

#include "base/atomic_folder.h"
#include "base/error.h"

namespace octet {

void replace_file(const std::filesystem::path& path, std::string_view text) {
  namespace fs = std::filesystem;
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
  // Beside the target: renaming does not cross file systems. A link keeps pointing to its file.
  const fs::path target = fs::is_symlink(path, error) ? fs::weakly_canonical(path, error) : path;
  fs::path work = target;
  work += fmt::format(".part-{}", ::getpid());
  try {
    write_file(work, text);
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
