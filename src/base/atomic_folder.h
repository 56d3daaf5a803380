#pragma once
// A folder that appears complete or not at all.
#include <cstdint>
#include <filesystem>
#include <string_view>

namespace octet {

enum class Existing : uint8_t {
  Refuse,
  Replace
};  // what to do with a target that is there already

// Collects files in a folder beside `target` and renames it to `target` in commit(); without a
// commit the destructor removes it. What a process that was killed has left of the same target goes
// away with the next one. Move-only.
//   AtomicFolder out(target, Existing::Refuse);
//   write_files(out.path());
//   out.commit();
class AtomicFolder {
 public:
  // Throws BadInput when `target` exists, is not an empty folder and `existing` is Refuse, is a
  // file, or would lie in a folder that does not exist; Environment when the folder cannot be made.
  AtomicFolder(const std::filesystem::path& target, Existing existing);
  AtomicFolder(AtomicFolder&& other) noexcept;
  AtomicFolder& operator=(AtomicFolder&&) = delete;
  AtomicFolder(const AtomicFolder&) = delete;
  AtomicFolder& operator=(const AtomicFolder&) = delete;
  ~AtomicFolder();

  // Where to write until commit(): on the same file system as the target.
  const std::filesystem::path& path() const { return work_; }
  const std::filesystem::path& target() const { return target_; }

  // Puts the folder in its place; with Replace the old one goes away only after that worked.
  // Throws Environment naming the target.
  void commit();

 private:
  std::filesystem::path target_;
  std::filesystem::path work_;  // empty: moved from or committed
  int lock_ = -1;               // of the work folder; -1: none
  Existing existing_;
};

// Removes the folders of every AtomicFolder that is alive, with the files in them. For a handler of
// a signal that ends the process: async-signal-safe.
void remove_unfinished_folders() noexcept;

}  // namespace octet
