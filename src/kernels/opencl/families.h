#pragma once
// The ways in which one OpenCL source becomes kernels: how it is compiled and how many work-items
// share 16 lanes (lanes.cl).
#include <string>
#include <string_view>

#include "device/opencl.h"
#include "num/enum_set.h"

namespace octet::opencl {

struct Family {
  std::string_view name;     // last part of kernel names
  std::string_view options;  // of the compiler
  size_t items;              // work-items of 16 lanes
  Features needs;
};

// Any OpenCL device: a work-item holds 16 lanes as a vector.
inline constexpr Family kPlain{"plain", "-cl-std=CL1.2", 1, {}};
// The same where a work-item is a lane of the hardware: a work-group of 16 holds one each.
inline constexpr Family kPlainNarrow{"plain_narrow", "-cl-std=CL1.2 -DOCTET_NARROW", 16, {}};
// Intel's subgroups of 16.
inline constexpr Family kSubgroup{
    "subgroup", "-cl-std=CL2.0 -DOCTET_SUBGROUP", 16, {Feature::ClSubgroup16}};

// Intel's matrix engine with 16 columns (Xe-HPC, Xe2) or 8 (Xe-HPG): as many as a subgroup has
// lanes.
inline constexpr Family kDpas16{"dpas16",
                                "-cl-std=CL2.0 -DOCTET_SUBGROUP -DOCTET_DPAS=16",
                                16,
                                {Feature::ClSubgroup16, Feature::ClDpas16}};
inline constexpr Family kDpas8{"dpas8",
                               "-cl-std=CL2.0 -DOCTET_SUBGROUP -DOCTET_DPAS=8",
                               8,
                               {Feature::ClSubgroup8, Feature::ClDpas8}};

// The stream of an OpenCL device, which is all that kernels of this folder are started on.
inline OpenClStream& opencl(Stream& stream) {
  return static_cast<OpenClStream&>(stream);
}

// The form of a family that the stream's device runs.
inline const Family& form_of(const Family& family, Stream& stream) {
  return &family == &kPlain && opencl(stream).narrow() ? kPlainNarrow : family;
}

// `panels` panels of 16 lanes times `rows`.
inline ClGrid lane_grid(const Family& family, int64_t panels, int64_t rows) {
  return {{static_cast<size_t>(panels) * family.items, static_cast<size_t>(rows), 1},
          {family.items, 1, 1}};
}

// Sizes and strides are int in the kernels: every one of a model is below 2^31.
inline int to_int(int64_t value) {
  return static_cast<int>(value);
}

}  // namespace octet::opencl
