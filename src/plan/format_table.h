#pragma once
// Which scheme and kernel each quantised format of a checkpoint gets: the table of docs/FORMATS.md,
// made by the resolver itself.
#include <string>
#include <string_view>
#include <vector>

#include "plan/resolve.h"

namespace octet {

// An instruction set for which the table has a column.
struct FormatLevel {
  std::string_view isa;  // as --max-isa takes it
  DeviceInfo device;     // made up: a CPU with all that the level has
};

// Lowest first.
const std::vector<FormatLevel>& format_levels();

// One way of storing a linear layer and what the resolver makes of it.
struct FormatRow {
  std::string weight;               // scales of the weight, in the words of the checkpoint
  std::string input;                // quantisation of the input, likewise
  LayerQuant quant;                 // as the config parser reads these words
  std::vector<Resolution> choices;  // one per level
};

// The shape that every row is planned for: its K is no multiple of any group size in the table, so
// the last group is short.
inline constexpr LayerShape kFormatShape{576, 576};

// Every weight scale with every input quantisation, then MXFP8 and unquantised weights, resolved
// over the linked kernels with no wishes of a user.
std::vector<FormatRow> format_rows();

// The rows as a Markdown table.
std::string format_table_markdown();

}  // namespace octet
