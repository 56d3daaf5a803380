#pragma once
// Aligned text tables for the terminal.
#include <string>
#include <string_view>
#include <vector>

namespace octet {

// Columns that a terminal uses for UTF-8 text: 2 for East Asian wide characters and emoji, 0 for
// combining marks and control characters, 1 for all others and for each byte that is not UTF-8.
size_t display_width(std::string_view text);

enum class Align { Left, Right };

// Rows of cells, each column as wide as its widest cell and two spaces from the next.
class TextTable {
 public:
  // A table without a header; columns beyond `aligns` are aligned left.
  explicit TextTable(std::vector<Align> aligns = {}) : aligns_(std::move(aligns)) {}

  // The first row, underlined by dashes.
  void header(std::vector<std::string> cells);
  // Rows may have fewer cells than others. Line feeds in a cell become spaces.
  void row(std::vector<std::string> cells);

  size_t rows() const { return rows_.size(); }

  // All rows, each begun by `indent` spaces and ended by a line feed, no spaces before it.
  std::string to_string(size_t indent = 0) const;

 private:
  std::vector<Align> aligns_;
  std::vector<std::string> header_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace octet
