// What OpenCL devices there are, and what one can do: asked of the driver where it says so, tried
// where it does not.
#include <fmt/format.h>

#include <numeric>

#include "base/error.h"
#include "base/printable.h"
#include "device/opencl_probe.h"
#include "device/opencl_self_tests.h"

namespace octet {
namespace {

// A subgroup of SIZE work-items: block reads, a shuffle and a sum in one value per work-item.
constexpr std::string_view kSubgroupSource = R"cl(
#pragma OPENCL EXTENSION cl_intel_subgroups : enable
__attribute__((intel_reqd_sub_group_size(SIZE)))
__kernel void probe(__global const uint* in, __global uint* out) {
  const uint word = intel_sub_group_block_read(in);
  const uint4 more = intel_sub_group_block_read4(in);
  const uint other = intel_sub_group_shuffle(word, (get_sub_group_local_id() + 3) % SIZE);
  out[get_global_id(0)] = other + 1000 * (uint)sub_group_reduce_add((int)word) +
                          1000000 * (more.s0 - word + get_sub_group_size() - SIZE);
}
)cl";

constexpr std::string_view kFp16Source = R"cl(
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
__kernel void probe(__global const uint* in, __global uint* out) {
  const half scaled = as_half((ushort)in[get_global_id(0)]) * (half)2;
  out[get_global_id(0)] = as_ushort(scaled);
}
)cl";

constexpr std::string_view kBf16Source = R"cl(
__kernel void probe(__global const uint* in, __global uint* out) {
  out[get_global_id(0)] = intel_convert_bfloat16_as_ushort(as_float(in[get_global_id(0)]));
}
)cl";

constexpr std::string_view kDpasSource = R"cl(
float __attribute__((overloadable)) intel_sub_group_bf16_bf16_matrix_mad_k16(A a, int8 b, float c);
__attribute__((intel_reqd_sub_group_size(SIZE)))
__kernel void probe(__global const uint* in, __global uint* out) {
  out[get_global_id(0)] = as_uint(intel_sub_group_bf16_bf16_matrix_mad_k16((A)0, (int8)0, 1.0f));
}
)cl";

constexpr size_t kWords = 64;

// Runs a probe on words 0, 1, 2, ... of `in`; nothing when it does not compile or run.
std::vector<cl_uint> try_probe(Device& device, const ClProgram& program, size_t items,
                               std::vector<cl_uint> in) {
  try {
    const std::unique_ptr<Stream> stream = device.make_stream();
    const Buffer input = device.allocate(kWords * sizeof(cl_uint));
    const Buffer output = device.allocate(kWords * sizeof(cl_uint));
    in.resize(kWords);
    std::vector<cl_uint> out(items);
    stream->upload(input.data(), in.data(), in.size() * sizeof(cl_uint));
    static_cast<OpenClStream&>(*stream).enqueue(program, "probe", {{items, 1, 1}, {items, 1, 1}},
                                                {input.data(), output.data()});
    stream->download(out.data(), output.data(), out.size() * sizeof(cl_uint));
    return out;
  } catch (const Error&) {
    return {};
  }
}

bool has_subgroup(Device& device, cl_uint size) {
  std::vector<cl_uint> in(kWords);
  std::iota(in.begin(), in.end(), 0);
  const std::string options = fmt::format("-cl-std=CL2.0 -DSIZE={}", size);
  const std::string name = fmt::format("probe_subgroup{}", size);
  const auto out = try_probe(device, {name, kSubgroupSource, options}, size, in);
  if (out.size() != size) return false;
  const cl_uint sum = size * (size - 1) / 2;
  for (cl_uint i = 0; i < size; ++i) {
    if (out[i] != (i + 3) % size + 1000 * sum) return false;
  }
  return true;
}

bool has_fp16(Device& device) {
  // One, the least subnormal, and a number in between.
  const auto out =
      try_probe(device, {"probe_fp16", kFp16Source, "-cl-std=CL1.2"}, 3, {0x3C00, 0x0001, 0x0300});
  return out == std::vector<cl_uint>{0x4000, 0x0002, 0x0600};
}

bool has_bf16(Device& device) {
  // A tie to even below, one above, and a value past the tie.
  const auto out = try_probe(device, {"probe_bf16", kBf16Source, "-cl-std=CL2.0"}, 3,
                             {0x3F808000, 0x3F818000, 0x3F808001});
  return out == std::vector<cl_uint>{0x3F80, 0x3F82, 0x3F81};
}

bool has_dpas(Device& device, cl_uint columns) {
  const std::string options =
      fmt::format("-cl-std=CL2.0 -DSIZE={} -DA={}", columns, columns == 8 ? "int" : "short");
  const std::string name = fmt::format("probe_dpas{}", columns);
  const auto out = try_probe(device, {name, kDpasSource, options}, columns, {});
  return out == std::vector<cl_uint>(columns, 0x3F800000);
}

// What is tried, each when the driver gives any sign that it could work: some compilers print what
// they refuse on the terminal.
Features try_features(Device& device, cl_device_id id) {
  const std::string extensions = device_text(id, CL_DEVICE_EXTENSIONS);
  const bool intel = extensions.find("cl_intel_") != std::string::npos;
  Features features;
  if ((intel || extensions.find("cl_khr_fp16") != std::string::npos) && has_fp16(device))
    features.insert(Feature::ClFp16);
  if (!intel) return features;
  if (has_bf16(device)) features.insert(Feature::ClBf16);
  if (has_subgroup(device, 8)) features.insert(Feature::ClSubgroup8);
  if (has_subgroup(device, 16)) features.insert(Feature::ClSubgroup16);
  if (features.has(Feature::ClSubgroup8) && has_dpas(device, 8)) features.insert(Feature::ClDpas8);
  if (features.has(Feature::ClSubgroup16) && has_dpas(device, 16))
    features.insert(Feature::ClDpas16);
  return features;
}

constexpr Feature kTried[] = {Feature::ClFp16,       Feature::ClBf16,  Feature::ClSubgroup8,
                              Feature::ClSubgroup16, Feature::ClDpas8, Feature::ClDpas16};

// The features that are tried, from the cache where they were tried before.
Features tried_features(Device& device, const OpenClContext& context) {
  const std::string kept_name = "features 2\n" + opencl_self_test_versions();
  if (const auto text = context.kept(kept_name)) {
    Features features;
    for (const Feature f : kTried) {
      if (text->find(fmt::format("{};", name(f))) != std::string::npos) features.insert(f);
    }
    return features;
  }
  const Features features = passed_self_tests(device, try_features(device, context.device()));
  std::string text = "tried:";
  features.each([&](Feature f) { text += fmt::format(" {};", name(f)); });
  context.keep(kept_name, text);
  return features;
}

Features find_features(Device& device, const OpenClContext& context) {
  cl_device_id id = context.device();
  Features features = tried_features(device, context);
  const auto single = device_value<cl_device_fp_config>(id, CL_DEVICE_SINGLE_FP_CONFIG);
  if ((single & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) != 0) features.insert(Feature::ClExactDivide);
  if (opencl_memory_kind(id) == "USM") features.insert(Feature::ClUsm);
  return features;
}

// Why a device cannot be used at all.
std::string problem_of(cl_device_id device) {
  if (device_value<cl_bool>(device, CL_DEVICE_AVAILABLE) == CL_FALSE) return "is not available";
  if (device_value<cl_bool>(device, CL_DEVICE_COMPILER_AVAILABLE) == CL_FALSE)
    return "has no compiler";
  if (opencl_memory_kind(device).empty())
    return "has neither unified shared memory nor shared virtual memory";
  if (device_value<cl_bool>(device, CL_DEVICE_ENDIAN_LITTLE) == CL_FALSE) return "is big-endian";
  return {};
}

}  // namespace

std::vector<OpenClEntry> list_opencl_devices() {
  std::vector<OpenClEntry> entries;
  try {
    for (const OpenClHandle& handle : opencl_handles()) {
      OpenClEntry entry;
      entry.index = static_cast<int>(entries.size());
      entry.gpu =
          (device_value<cl_device_type>(handle.device, CL_DEVICE_TYPE) & CL_DEVICE_TYPE_GPU) != 0;
      entry.platform = printable_name(platform_text(handle.platform, CL_PLATFORM_NAME));
      entry.name = printable_name(device_text(handle.device, CL_DEVICE_NAME));
      entry.problem = problem_of(handle.device);
      entries.push_back(std::move(entry));
    }
  } catch (const Error&) {
    // Without a loader there are no devices; what opens one says why.
    return {};
  }
  return entries;
}

std::string opencl_loader_problem() {
  try {
    static_cast<void>(opencl_api());
    return {};
  } catch (const Error& error) {
    return error.message();
  }
}

DeviceInfo describe_opencl(Device& device, const OpenClContext& context) {
  cl_device_id id = context.device();
  DeviceInfo info;
  info.kind = DeviceKind::OpenCl;
  info.name = device_text(id, CL_DEVICE_NAME);
  info.driver = device_text(id, CL_DRIVER_VERSION);
  info.memory_bytes = device_value<cl_ulong>(id, CL_DEVICE_GLOBAL_MEM_SIZE);
  info.max_allocation_bytes = device_value<cl_ulong>(id, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
  info.features = find_features(device, context);
  return info;
}

DeviceInfo probe_opencl(int index, const std::filesystem::path& cache) {
  return make_opencl_device(index, cache)->info();
}

}  // namespace octet
