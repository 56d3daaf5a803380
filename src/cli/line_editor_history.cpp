#include "cli/line_editor_history.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

namespace octet {
namespace {

std::string escape(std::string_view entry) {
  std::string line;
  for (const char c : entry) {
    if (c == '\n')
      line += "\\n";
    else if (c == '\\')
      line += "\\\\";
    else
      line += c;
  }
  return line + "\n";
}

std::string unescape(std::string_view line) {
  std::string entry;
  for (size_t i = 0; i < line.size(); ++i) {
    const bool escaped = line[i] == '\\' && i + 1 < line.size();
    if (escaped) ++i;
    entry += escaped && line[i] == 'n' ? '\n' : line[i];
  }
  return entry;
}

// One write() for the whole line: entries of two programs do not mix (O_APPEND).
std::string append(const std::string& path, std::string_view line) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (file < 0) return std::strerror(errno);
  const ssize_t written = write(file, line.data(), line.size());
  const int error = written < 0 ? errno : written < static_cast<ssize_t>(line.size()) ? ENOSPC : 0;
  close(file);
  return error == 0 ? "" : std::strerror(error);
}

}  // namespace

InputHistory::InputHistory(std::string path, size_t limit) : path_(std::move(path)), limit_(limit) {
  if (path_.empty()) return;
  std::ifstream file(path_);
  if (!file) {
    if (errno != ENOENT) {
      problem_ = fmt::format("cannot read history '{}': {}", path_, std::strerror(errno));
    }
    return;
  }
  for (std::string line; std::getline(file, line);) {
    if (!line.empty()) entries_.push_back(unescape(line));
    if (entries_.size() >= 2 * limit_ + 1) {
      entries_.erase(entries_.begin(), entries_.end() - static_cast<std::ptrdiff_t>(limit_));
    }
  }
  if (entries_.size() > limit_) {
    entries_.erase(entries_.begin(), entries_.end() - static_cast<std::ptrdiff_t>(limit_));
  }
}

bool InputHistory::add(std::string_view entry) {
  if (entry.empty() || (!entries_.empty() && entries_.back() == entry)) return false;
  entries_.emplace_back(entry);
  if (entries_.size() > limit_) entries_.erase(entries_.begin());
  if (path_.empty()) return true;
  if (const std::string error = append(path_, escape(entry)); !error.empty()) {
    problem_ = fmt::format("cannot write history '{}': {}", path_, error);
  }
  return true;
}

}  // namespace octet
