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
// Intel's subgroups of 16.
inline constexpr Family kSubgroup{
    "subgroup", "-cl-std=CL2.0 -DOCTET_SUBGROUP", 16, {Feature::ClSubgroup16}};

// The stream of an OpenCL device, which is all that kernels of this folder are started on.
inline OpenClStream& opencl(Stream& stream) {
  return static_cast<OpenClStream&>(stream);
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
