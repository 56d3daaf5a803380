#include "io/hub_cache.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <system_error>
#include <vector>

#include "base/error.h"
#include "base/mapped_file.h"
#include "base/plural.h"
#include "base/printable.h"

namespace octet {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "models--";
constexpr std::string_view kMain = "main";
constexpr size_t kCommitDigits = 40;
// A ref holds one commit; a file that is longer is none.
constexpr uint64_t kMaxRefBytes = 4096;
// Bytes of a part of a repository's name, as the hub has it, and of a revision.
constexpr size_t kLongestPart = 96;
constexpr size_t kLongestRevision = 256;
// More names make no message clearer.
constexpr size_t kShown = 5;

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// A part of a repository's name, as the hub admits them (huggingface_hub, validate_repo_id).
bool is_repo_part(std::string_view part) {
  if (part.empty() || part.size() > kLongestPart || !is_word(part.front())) return false;
  return std::all_of(part.begin(), part.end(),
                     [](char c) { return is_word(c) || c == '-' || c == '.'; }) &&
         part.find("--") == std::string_view::npos && part.find("..") == std::string_view::npos;
}

// A revision becomes a path below refs/ and snapshots/: every component must stay below.
bool is_revision(std::string_view text) {
  if (text.empty() || text.size() > kLongestRevision) return false;
  while (true) {
    const size_t slash = text.find('/');
    const std::string_view part = text.substr(0, slash);
    if (part.empty() || part.front() == '.' || part.front() == '-') return false;
    if (!std::all_of(part.begin(), part.end(),
                     [](char c) { return is_word(c) || c == '-' || c == '.' || c == '+'; })) {
      return false;
    }
    if (slash == std::string_view::npos) return true;
    text.remove_prefix(slash + 1);
  }
}

bool is_commit(std::string_view text) {
  return text.size() == kCommitDigits && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

// Throws Environment where that cannot be told: a cache that may not be read is not an empty one.
fs::file_type type_of(const fs::path& path) {
  std::error_code unreadable;
  const fs::file_type type = fs::status(path, unreadable).type();
  if (type == fs::file_type::none || type == fs::file_type::unknown) {
    throw_error(Code::Environment,
                fmt::format("cannot look for {} in the Hugging Face cache: {}", path.string(),
                            unreadable.message()),
                "check the permissions of the cache, or name another with HF_HUB_CACHE");
  }
  return type;
}

bool is_folder(const fs::path& path) {
  return type_of(path) == fs::file_type::directory;
}

std::string folder_name(std::string_view repo) {
  std::string name(kPrefix);
  for (const char c : repo) name += c == '/' ? "--" : std::string(1, c);
  return name;
}

// Names of the files below `dir`, relative to it and sorted; folders themselves do not count.
std::vector<std::string> files_below(const fs::path& dir) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::recursive_directory_iterator it(dir, error), end; !error && it != end;
       it.increment(error)) {
    std::error_code unreadable;
    if (it->is_regular_file(unreadable)) names.push_back(it->path().lexically_relative(dir));
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> folders_in(const fs::path& dir) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(dir, error), end; !error && it != end; it.increment(error)) {
    std::error_code unreadable;
    if (it->is_directory(unreadable)) names.push_back(it->path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// "a, b and 3 more", or "none".
std::string some_of(const std::vector<std::string>& names) {
  if (names.empty()) return "none";
  std::vector<std::string> shown;
  for (size_t i = 0; i < std::min(names.size(), kShown); ++i) {
    shown.push_back(printable_name(names[i]));
  }
  std::string text = fmt::format("{}", fmt::join(shown, ", "));
  if (names.size() > kShown) text += fmt::format(" and {} more", names.size() - kShown);
  return text;
}

std::vector<std::string> unfinished_downloads(const fs::path& repository) {
  std::vector<std::string> names;
  for (const std::string& name : files_below(repository / "blobs")) {
    if (name.ends_with(".incomplete")) names.push_back("blobs/" + name);
  }
  return names;
}

// "; 1 download is not finished: blobs/abc.incomplete", or nothing.
std::string unfinished_note(const fs::path& repository) {
  const std::vector<std::string> names = unfinished_downloads(repository);
  if (names.empty()) return {};
  return fmt::format("; {} not finished: {}",
                     counted(names.size(), "download") + (names.size() == 1 ? " is" : " are"),
                     some_of(names));
}

// A word of a shell command; names of files come from the network.
std::string shell_word(std::string_view text) {
  const bool plain = !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return is_word(c) || c == '-' || c == '.' || c == '/' || c == '+' || c == '=';
  });
  if (plain) return std::string(text);
  std::string quoted = "'";
  for (const char c : printable_line(text)) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

[[noreturn]] void throw_not_cached(const HubName& name, std::span<const fs::path> roots) {
  std::vector<std::string> folders;
  for (const fs::path& root : roots) folders.push_back((root / folder_name(name.repo)).string());
  throw_error(
      Code::BadInput,
      folders.empty()
          ? fmt::format("model {}: no such folder, and no Hugging Face cache to look in: HOME, "
                        "HF_HOME and HF_HUB_CACHE are not set",
                        name.repo)
          : fmt::format("model {}: no such folder, and not in the Hugging Face cache: there is no "
                        "{}",
                        name.repo, fmt::join(folders, ", no ")),
      fmt::format("fetch it with `{}`, or name a folder that is there",
                  download_command(name.repo, {}, name.revision.value_or(std::string(kMain)))));
}

// What a repository has when it lacks the revision asked for.
[[noreturn]] void throw_no_revision(const HubName& name, const fs::path& repository,
                                    std::string_view what) {
  const std::string revision = name.revision.value_or(std::string(kMain));
  const std::vector<std::string> snapshots = folders_in(repository / "snapshots");
  std::string hint = fmt::format("fetch it with `{}`", download_command(name.repo, {}, revision));
  if (!snapshots.empty()) {
    hint += fmt::format(", or name one that is there: {}@{}", name.repo,
                        printable_name(snapshots.front()));
  }
  throw_error(Code::BadInput,
              fmt::format("model {}: {} {}; refs there: {}; snapshots there: {}{}", name.repo,
                          repository.string(), what, some_of(files_below(repository / "refs")),
                          some_of(snapshots), unfinished_note(repository)),
              std::move(hint));
}

// `text` is longer than a path may be here.
[[noreturn]] void refuse_long_name(std::string_view text) {
  constexpr size_t kShownBytes = 60;
  throw_error(Code::BadInput,
              fmt::format("model \"{}...\" of {} bytes is too long for a path, and is not "
                          "ORG/NAME[@REVISION] (parts of at most {} bytes, a revision of {})",
                          printable_name(text.substr(0, kShownBytes)), text.size(), kLongestPart,
                          kLongestRevision),
              "name a folder, a file or a model of the Hugging Face cache");
}

// The commit that `revision` names in a repository, which may lack its snapshot.
std::string commit_of(const HubName& name, const fs::path& repository) {
  const std::string revision = name.revision.value_or(std::string(kMain));
  if (is_commit(revision)) return revision;
  const fs::path ref = repository / "refs" / revision;
  if (type_of(ref) != fs::file_type::regular) {
    throw_no_revision(name, repository, fmt::format("has no refs/{}", revision));
  }
  std::string commit = read_text_file(ref, kMaxRefBytes);
  while (!commit.empty() && std::string_view(" \r\n\t").find(commit.back()) != std::string::npos) {
    commit.pop_back();
  }
  if (!is_commit(commit)) {
    throw_no_revision(name, repository,
                      fmt::format("has refs/{} with \"{}\" inside, expected a commit of {} digits",
                                  revision, printable_name(commit.substr(0, 80)), kCommitDigits));
  }
  return commit;
}

}  // namespace

std::optional<HubName> parse_hub_name(std::string_view text) {
  HubName name;
  const size_t at = text.find('@');
  if (at != std::string_view::npos) {
    if (!is_revision(text.substr(at + 1))) return std::nullopt;
    name.revision = std::string(text.substr(at + 1));
    text = text.substr(0, at);
  }
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos || !is_repo_part(text.substr(0, slash)) ||
      !is_repo_part(text.substr(slash + 1))) {
    return std::nullopt;
  }
  name.repo = std::string(text);
  return name;
}

fs::path find_snapshot(const HubName& name, std::span<const fs::path> roots) {
  for (const fs::path& root : roots) {
    const fs::path repository = root / folder_name(name.repo);
    if (!is_folder(repository)) continue;
    const std::string commit = commit_of(name, repository);
    fs::path snapshot = repository / "snapshots" / commit;
    if (!is_folder(snapshot)) {
      throw_no_revision(name, repository, fmt::format("has no snapshots/{}", commit));
    }
    return snapshot;
  }
  throw_not_cached(name, roots);
}

fs::path resolve_model(std::string_view text, const std::optional<std::string>& revision,
                       std::span<const fs::path> roots) {
  std::error_code unreadable;
  const bool on_disk = fs::exists(fs::path(text), unreadable);
  if (unreadable == std::errc::filename_too_long) refuse_long_name(text);
  std::optional<HubName> name = on_disk ? std::nullopt : parse_hub_name(text);
  if (revision && !name) {
    throw_error(Code::BadInput,
                fmt::format("--revision {}: {} {}", printable_name(*revision), text,
                            on_disk ? "is a file or folder and has no revisions"
                                    : "is not the name of a model of the hub"),
                "--revision goes with ORG/NAME in the Hugging Face cache");
  }
  if (!name) return text;
  if (revision) {
    if (name->revision && *name->revision != *revision) {
      throw_error(Code::BadInput,
                  fmt::format("{} names revision {}, --revision says {}", text, *name->revision,
                              printable_name(*revision)),
                  "name the revision once");
    }
    if (!is_revision(*revision)) {
      throw_error(Code::BadInput,
                  fmt::format("--revision \"{}\" is not a branch, a tag or a commit",
                              printable_name(*revision)),
                  "such as main, v1.0, refs/pr/1 or 40 hexadecimal digits");
    }
    name->revision = *revision;
  }
  return find_snapshot(*name, roots);
}

std::optional<HubOrigin> hub_origin(const fs::path& dir) {
  std::error_code error;
  fs::path path = fs::absolute(dir, error).lexically_normal();
  if (error) return std::nullopt;
  if (!path.has_filename()) path = path.parent_path();
  const fs::path snapshots = path.parent_path();
  const fs::path repository = snapshots.parent_path();
  const std::string folder = repository.filename().string();
  if (snapshots.filename() != "snapshots" || !folder.starts_with(kPrefix)) return std::nullopt;
  std::string repo = folder.substr(kPrefix.size());
  if (const size_t cut = repo.find("--"); cut != std::string::npos) repo.replace(cut, 2, "/");
  if (!parse_hub_name(repo)) return std::nullopt;
  return HubOrigin{std::move(repo), path.filename().string(), repository};
}

std::string download_command(std::string_view repo, std::span<const std::string> files,
                             std::string_view revision) {
  std::string command = fmt::format("hf download {}", shell_word(repo));
  for (const std::string& file : files) command += " " + shell_word(file);
  return command + fmt::format(" --revision {}", shell_word(revision));
}

std::string fetch_hint(const HubOrigin& origin, std::span<const std::string> files) {
  return fmt::format("fetch with `{}`{}", download_command(origin.repo, files, origin.commit),
                     unfinished_note(origin.repository));
}

std::string refetch_hint(const fs::path& file, std::string_view otherwise) {
  const auto origin = hub_origin(file.parent_path());
  if (!origin) return std::string(otherwise);
  const std::array files{file.filename().string()};
  // Without --force-download a blob that is there counts as whole.
  return fmt::format("the file is damaged or cut short: fetch it again with `{} --force-download`",
                     download_command(origin->repo, files, origin->commit));
}

Error with_refetch(const Error& error, const fs::path& dir, std::span<const std::string> files) {
  const auto origin = hub_origin(dir);
  if (!origin || error.code() != Code::BadInput) return error;
  std::vector<std::string> named;
  for (const std::string& file : files) {
    if (error.message().find(file) != std::string::npos) named.push_back(file);
  }
  if (named.empty()) return error;
  return {error.code(), error.message(),
          fmt::format("{}{}a damaged file is fetched again with `{} --force-download`",
                      error.hint(), error.hint().empty() ? "" : "; ",
                      download_command(origin->repo, named, origin->commit))};
}

void check_fetched(const fs::path& file) {
  std::error_code unreadable;
  if (fs::exists(file, unreadable) || unreadable) return;  // opening it says what is wrong
  const auto origin = hub_origin(file.parent_path());
  if (!origin) return;
  const std::array files{file.filename().string()};
  throw_error(Code::BadInput,
              fmt::format("{} is not there{}", file.string(),
                          fs::is_symlink(file, unreadable) ? ": its blob was removed" : ""),
              fetch_hint(*origin, files));
}

std::string model_name(const fs::path& dir) {
  if (const auto origin = hub_origin(dir)) return origin->repo;
  return dir.filename().empty() ? dir.parent_path().filename().string() : dir.filename().string();
}

}  // namespace octet
