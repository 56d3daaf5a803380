#pragma once
// The lines typed in former sessions, in a file of one line per entry.
#include <string>
#include <string_view>
#include <vector>

namespace octet {

// Entries in the file are UTF-8; a line feed inside an entry is written \n, a backslash \\. The
// file is only readable by its owner, since prompts are private. An empty path keeps nothing.
class InputHistory {
 public:
  // Reads the newest `limit` entries. A missing file is an empty history.
  explicit InputHistory(std::string path, size_t limit = 1000);

  // Adds an entry unless it is empty or equals the newest one; false when it was not added. The
  // file is appended to at once, so that several programs can share it.
  bool add(std::string_view entry);

  // Oldest first.
  const std::vector<std::string>& entries() const { return entries_; }

  // Why the file could not be read or written; empty while all is well.
  const std::string& problem() const { return problem_; }

 private:
  std::string path_;
  size_t limit_;
  std::vector<std::string> entries_;
  std::string problem_;
};

}  // namespace octet
