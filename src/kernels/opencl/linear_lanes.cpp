// Linear layers in lane vectors: two families, weights with one scale per tensor or row and with
// blocks, unquantised weights.
//
// Where a weight has one scale a row, W8A16 stands above W8A8: both read the same bytes, and W8A16
// rounds nothing. Where it has blocks and the checkpoint quantises activations, W8A8 stands first,
// as other engines compute it.
#include "kernels/opencl/linear_panels.h"

namespace octet::opencl {
namespace {

constexpr EnumSet<Granularity> kWhole16 = {Granularity::Tensor, Granularity::Row};
constexpr EnumSet<Granularity> kParts = {Granularity::Group, Granularity::Block};

template <const Family& F>
void panels(const LinearArgs& args, Stream& stream) noexcept {
  run_panels(form_of(F, stream), args, stream);
}
template <const Family& F>
void rows(const LinearArgs& args, Stream& stream) noexcept {
  run_rows(form_of(F, stream), args, stream);
}

constexpr LinearCaps codes_caps(EnumSet<Granularity> weight_scales) {
  return {.weight_dtypes = {DType::F8E4M3, DType::F8E5M2},
          .weight_scales = weight_scales,
          .scale_dtypes = {DType::F32, DType::F16, DType::BF16, DType::F8E8M0}};
}

constexpr LinearKernel w8a16(std::string_view name, const Family& family, int preference,
                             EnumSet<Granularity> weight_scales) {
  return {.name = name,
          .device = DeviceKind::OpenCl,
          .scheme = SchemeId::W8A16,
          .preference = preference,
          .needs = family.needs,
          .caps = codes_caps(weight_scales),
          .layout = kX16Layout,
          .error = {.lanes = 2, .run = 1, .roundings = 1, .batch_invariant = true},
          .code_bytes = x16_bytes,
          .pack = pack_x16};
}

constexpr LinearKernel w8a8(std::string_view name, const Family& family, int preference,
                            EnumSet<Granularity> weight_scales) {
  LinearKernel kernel = w8a16(name, family, preference, weight_scales);
  kernel.scheme = SchemeId::W8A8;
  kernel.caps.activation_scales = {Granularity::Tensor, Granularity::Row, Granularity::Group};
  kernel.caps.activation_dtypes = {DType::F8E4M3, DType::F8E5M2};
  kernel.caps.inputs = {};
  // The scale of an input is multiplied into it before the sums.
  kernel.error.scales_input_first = true;
  kernel.scratch_bytes = panel_scratch_bytes;
  return kernel;
}

constexpr LinearKernel plain(std::string_view name, const Family& family, int preference) {
  return {.name = name,
          .device = DeviceKind::OpenCl,
          .scheme = SchemeId::Plain,
          .preference = preference,
          .needs = family.needs,
          .caps = {.weight_dtypes = {DType::BF16, DType::F16, DType::F32}, .weight_scales = {}},
          .layout = kCheckpointLayout,
          .error = {.lanes = 16, .run = 1, .roundings = 1, .batch_invariant = true},
          .pack = pack_in_place};
}

constexpr LinearKernel with_run(LinearKernel kernel,
                                void (*run)(const LinearArgs&, Stream&) noexcept) {
  kernel.run = run;
  return kernel;
}

constexpr LinearKernel kPlainW8a16 =
    with_run(w8a16("opencl.linear.w8a16.f8.plain", kPlain, 140, kWhole16), panels<kPlain>);
constexpr LinearKernel kPlainW8a8Parts =
    with_run(w8a8("opencl.linear.w8a8.f8_block.plain", kPlain, 130, kParts), panels<kPlain>);
constexpr LinearKernel kPlainW8a8 =
    with_run(w8a8("opencl.linear.w8a8.f8.plain", kPlain, 120, kWhole16), panels<kPlain>);
constexpr LinearKernel kPlainW8a16Parts =
    with_run(w8a16("opencl.linear.w8a16.f8_block.plain", kPlain, 110, kParts), panels<kPlain>);
constexpr LinearKernel kPlainFloat =
    with_run(plain("opencl.linear.plain.float.plain", kPlain, 100), rows<kPlain>);
OCTET_KERNEL(kPlainW8a16);
OCTET_KERNEL(kPlainW8a8Parts);
OCTET_KERNEL(kPlainW8a8);
OCTET_KERNEL(kPlainW8a16Parts);
OCTET_KERNEL(kPlainFloat);

constexpr LinearKernel kSubgroupW8a16 =
    with_run(w8a16("opencl.linear.w8a16.f8.subgroup", kSubgroup, 240, kWhole16), panels<kSubgroup>);
constexpr LinearKernel kSubgroupW8a8Parts = with_run(
    w8a8("opencl.linear.w8a8.f8_block.subgroup", kSubgroup, 230, kParts), panels<kSubgroup>);
constexpr LinearKernel kSubgroupW8a8 =
    with_run(w8a8("opencl.linear.w8a8.f8.subgroup", kSubgroup, 220, kWhole16), panels<kSubgroup>);
constexpr LinearKernel kSubgroupW8a16Parts = with_run(
    w8a16("opencl.linear.w8a16.f8_block.subgroup", kSubgroup, 210, kParts), panels<kSubgroup>);
constexpr LinearKernel kSubgroupFloat =
    with_run(plain("opencl.linear.plain.float.subgroup", kSubgroup, 200), rows<kSubgroup>);
OCTET_KERNEL(kSubgroupW8a16);
OCTET_KERNEL(kSubgroupW8a8Parts);
OCTET_KERNEL(kSubgroupW8a8);
OCTET_KERNEL(kSubgroupW8a16Parts);
OCTET_KERNEL(kSubgroupFloat);

}  // namespace
}  // namespace octet::opencl
