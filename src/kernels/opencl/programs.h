#pragma once
// Programs by what they are compiled for: an element type, a family of lanes, sizes.
#include <string>
#include <vector>

#include "kernels/opencl/families.h"
#include "num/dtype.h"

namespace octet::opencl {

// A text that lives as long as the process; equal texts are one.
std::string_view interned(std::string text);

// The define by which elements.cl knows a type: " -DOCTET_BF16"; empty for float32.
std::string_view element_define(DType type);

// Kernels of rows.cl, tables.cl (for tables of `type`) and sample.cl.
ClProgram rows_program();
ClProgram tables_program(DType type);
ClProgram sample_program();
// draw.cl.
ClProgram draw_program(const Family& family);
// attention.cl for a cache of `type` and heads of up to `chunks` * 16 elements.
ClProgram attention_program(const Family& family, DType type, int64_t chunks);

// A program and the name of the family that it is compiled for; "common" for those of all families.
struct FamilyProgram {
  std::string_view family;
  ClProgram program;
};

// Every program of every family, attention for common head sizes: what the offline compiler judges.
std::vector<FamilyProgram> all_programs();

// Work-items that share a row in rows.cl, and in sample.cl.
inline constexpr size_t kRowItems = 64;
inline constexpr size_t kVocabItems = 64;

}  // namespace octet::opencl
