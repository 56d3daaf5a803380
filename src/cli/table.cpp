#include "cli/table.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace octet {
namespace {

struct Range {
  uint32_t first, last;
};

// Unicode blocks of combining marks (no width) and of wide characters (East Asian Width W and F,
// Unicode Standard Annex 11, by blocks: a simple rule, not the full table).
constexpr std::array kNoWidth{Range{0x0300, 0x036F}, Range{0x0483, 0x0489}, Range{0x0591, 0x05BD},
                              Range{0x064B, 0x065F}, Range{0x1AB0, 0x1AFF}, Range{0x1DC0, 0x1DFF},
                              Range{0x200B, 0x200F}, Range{0x2060, 0x2064}, Range{0x20D0, 0x20FF},
                              Range{0xFE00, 0xFE0F}, Range{0xFE20, 0xFE2F}, Range{0xFEFF, 0xFEFF}};
constexpr std::array kWide{
    Range{0x1100, 0x115F},   Range{0x2E80, 0x303E},   Range{0x3041, 0x33FF},
    Range{0x3400, 0x4DBF},   Range{0x4E00, 0x9FFF},   Range{0xA000, 0xA4CF},
    Range{0xA960, 0xA97F},   Range{0xAC00, 0xD7A3},   Range{0xF900, 0xFAFF},
    Range{0xFE30, 0xFE6F},   Range{0xFF00, 0xFF60},   Range{0xFFE0, 0xFFE6},
    Range{0x1F300, 0x1F64F}, Range{0x1F680, 0x1F6FF}, Range{0x1F900, 0x1F9FF},
    Range{0x20000, 0x3FFFD}};

template <size_t N>
bool inside(const std::array<Range, N>& ranges, uint32_t code) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [&](Range range) { return range.first <= code && code <= range.last; });
}

struct Decoded {
  uint32_t code;
  size_t length;  // bytes; 1 for a byte that begins no character
};

Decoded decode(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  const size_t length = lead < 0x80    ? 1
                        : lead >= 0xF0 ? 4
                        : lead >= 0xE0 ? 3
                        : lead >= 0xC2 ? 2
                                       : 0;
  if (length == 0 || lead > 0xF4 || length > text.size()) return {0xFFFD, 1};
  if (length == 1) return {lead, 1};
  uint32_t code = lead & (0xFFU >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {0xFFFD, 1};
    code = code << 6 | (byte(i) & 0x3FU);
  }
  return {code, length};
}

void one_line(std::vector<std::string>& cells) {
  for (std::string& cell : cells) std::replace(cell.begin(), cell.end(), '\n', ' ');
}

}  // namespace

size_t display_width(std::string_view text) {
  size_t width = 0;
  while (!text.empty()) {
    const auto [code, length] = decode(text);
    text.remove_prefix(length);
    const bool control = code < 0x20 || (code >= 0x7F && code < 0xA0);
    if (control || inside(kNoWidth, code)) continue;
    width += inside(kWide, code) ? 2 : 1;
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
