#pragma once
// Rows of a table picked by index: the token embedding, and the rows whose logits are wanted.
#include "op/catalog.h"

namespace octet {

// out[i] = float(table[ids[i]]).
struct Gather {
  static constexpr std::string_view kName = "gather";

  struct Problem {
    DType table = DType::BF16;
  };

  struct Caps {
    EnumSet<DType> tables;
  };

  struct Args {
    const void* table =
        nullptr;  // [entries, width] of table_dtype, rows table_stride elements apart
    DType table_dtype = DType::BF16;
    int64_t table_stride = 0;
    int64_t first_entry = 0;  // ids below it and from first_entry + entries on give zeros (a rank's
                              // share of a vocabulary)
    int64_t entries = 0;
    const int32_t* ids = nullptr;  // [rows]
    float* out = nullptr;          // [rows, width], dense
    int64_t rows = 0;
    int64_t width = 0;
  };
};

void judge(const Gather::Caps& caps, const Gather::Problem& problem, std::vector<Refusal>& out);

}  // namespace octet
