#pragma once
// The shapes of the matrices that each suite runs its operation on, declared by the suite from the
// list its tests walk. A square matrix is on every list: there a kernel that takes rows for columns
// reads no byte that it should not, and only its values are wrong.
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace octet::conformance {

struct MatrixShape {
  int64_t rows = 0, cols = 0;
};

struct MatrixList {
  std::string_view operation;  // of the catalogue; linear has its scheme behind it: "linear w8a8"
  std::string_view matrix;     // its axes, for messages: "[rows, width]"
  std::vector<MatrixShape> (*shapes)();
};

// Every list that a suite of this program declares.
inline std::vector<MatrixList>& matrix_lists() {
  static std::vector<MatrixList> lists;
  return lists;
}

// Declares lists at namespace scope.
struct DeclareMatrices {
  explicit DeclareMatrices(std::vector<MatrixList> lists) {
    for (MatrixList& list : lists) matrix_lists().push_back(list);
  }
};

// The same number of rows with each width.
template <class Widths>
std::vector<MatrixShape> with_rows(int64_t rows, const Widths& widths) {
  std::vector<MatrixShape> shapes;
  for (const int64_t width : widths) shapes.push_back({rows, width});
  return shapes;
}

}  // namespace octet::conformance
