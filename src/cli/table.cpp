#include "cli/table.h"

#include <utf8proc.h>

#include <algorithm>

namespace octet {
namespace {

void one_line(std::vector<std::string>& cells) {
  for (std::string& cell : cells) std::replace(cell.begin(), cell.end(), '\n', ' ');
}

}  // namespace

size_t display_width(std::string_view text) {
  size_t width = 0;
  while (!text.empty()) {
    utf8proc_int32_t code = 0;
    const auto length = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                         static_cast<utf8proc_ssize_t>(text.size()), &code);
    width += length > 0 ? static_cast<size_t>(utf8proc_charwidth(code)) : 1;
    text.remove_prefix(length > 0 ? static_cast<size_t>(length) : 1);
  }
  return width;
}

void TextTable::header(std::vector<std::string> cells) {
  one_line(cells);
  header_ = std::move(cells);
}

void TextTable::row(std::vector<std::string> cells) {
  one_line(cells);
  rows_.push_back(std::move(cells));
}

std::string TextTable::to_string(size_t indent) const {
  std::vector<size_t> widths;
  const auto measure = [&](const std::vector<std::string>& cells) {
    widths.resize(std::max(widths.size(), cells.size()));
    for (size_t i = 0; i < cells.size(); ++i) {
      widths[i] = std::max(widths[i], display_width(cells[i]));
    }
  };
  measure(header_);
  for (const auto& cells : rows_) measure(cells);

  std::string text;
  const auto write = [&](const std::vector<std::string>& cells) {
    std::string line(indent, ' ');
    for (size_t i = 0; i < cells.size(); ++i) {
      const std::string padding(widths[i] - display_width(cells[i]), ' ');
      const bool right = i < aligns_.size() && aligns_[i] == Align::Right;
      line += i == 0 ? "" : "  ";
      line += right ? padding + cells[i] : cells[i] + padding;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  };
  if (!header_.empty()) {
    write(header_);
    std::vector<std::string> rule;
    for (const size_t width : widths) rule.emplace_back(width, '-');
    write(rule);
  }
  for (const auto& cells : rows_) write(cells);
  return text;
}

}  // namespace octet
