#pragma once
// The catalogue as a table: what `octet kernels` prints and docs/KERNELS.md holds.
#include <string>
#include <vector>

namespace octet {

// One kernel of the program, in words.
struct KernelRow {
  std::string name;
  std::string device;
  std::string op;
  std::string scheme;  // of a linear kernel; else empty
  std::string needs;   // instruction sets and device features, or "none"
  std::string takes;   // what its capability record admits
  int preference = 0;
  std::string proof;  // where it has run
};

// Every kernel: linear ones first, then the other operations, each best first.
std::vector<KernelRow> kernel_rows();

std::string kernels_text(const std::vector<KernelRow>& rows);
std::string kernels_json(const std::vector<KernelRow>& rows);
// docs/KERNELS.md.
std::string kernels_markdown(const std::vector<KernelRow>& rows);

}  // namespace octet
