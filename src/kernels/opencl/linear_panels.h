#pragma once
// Weights as x16 panels: how they are made, and the launch of their kernels.
#include "kernels/opencl/families.h"
#include "op/linear.h"

namespace octet::opencl {

// [ceil(N/16)][ceil(K/4)][16] words; a word holds codes k+2, k, k+3, k+1 of one column, lowest byte
// first, zero outside [N,K]: kernels of matrix engines find pairs of neighbours in one word.
inline constexpr std::string_view kX16Layout = "x16[N/16,K/4,16]";
// The same in panels of 8 columns.
inline constexpr std::string_view kX8Layout = "x8[N/8,K/4,8]";

// Device bytes of the codes of an [n, k] weight in panels.
uint64_t x16_bytes(int64_t n, int64_t k);
uint64_t x8_bytes(int64_t n, int64_t k);

// The pack functions of these layouts: rows go to the device in pieces and are laid out there.
// Cost: one copy of the codes, and one pass over them on the device.
PackedWeight pack_x16(const QuantView& view, const LinearProblem& problem, Device& device,
                      Stream& stream);
PackedWeight pack_x8(const QuantView& view, const LinearProblem& problem, Device& device,
                     Stream& stream);

// A scale tile's extent as kernels take it: 0 for the whole axis, else at most `longest`.
int tile_size(Extent size, int64_t longest);

// Scratch of run_panels: the widened input of W8A8.
size_t panel_scratch_bytes(const LinearProblem& problem, int64_t m, int threads);

// y = x W^T + bias by the programs of linear_f8.cl.
void run_panels(const Family& family, const LinearArgs& args, Stream& stream) noexcept;

// The same with weights that are not quantised, by linear_float.cl.
void run_rows(const Family& family, const LinearArgs& args, Stream& stream) noexcept;

// y = x W^T + bias on a matrix engine, by linear_dpas.cl.
void run_dpas(const Family& family, const LinearArgs& args, Stream& stream) noexcept;

// Every program that run_dpas() may start with `family`.
std::vector<ClProgram> dpas_programs(const Family& family);

// Every program that the other functions above may start with `family`, and those of all families.
std::vector<ClProgram> linear_programs(const Family& family);
std::vector<ClProgram> common_linear_programs();

}  // namespace octet::opencl
