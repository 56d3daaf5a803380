#include "kernels/opencl/sources.h"

namespace octet::opencl {

// clang-format off
const std::string_view kLinearF8Source =
#include "kernels/opencl/lanes.cl.inc"
#include "kernels/opencl/codes.cl.inc"
#include "kernels/opencl/linear_f8.cl.inc"
    ;
// clang-format on

// clang-format off
const std::string_view kLinearDpasSource =
#include "kernels/opencl/lanes.cl.inc"
#include "kernels/opencl/codes.cl.inc"
#include "kernels/opencl/linear_dpas.cl.inc"
    ;
// clang-format on

// clang-format off
const std::string_view kLinearFloatSource =
#include "kernels/opencl/lanes.cl.inc"
#include "kernels/opencl/numbers.cl.inc"
#include "kernels/opencl/elements.cl.inc"
#include "kernels/opencl/linear_float.cl.inc"
    ;
// clang-format on

// clang-format off
const std::string_view kLinearInputsSource =
#include "kernels/opencl/numbers.cl.inc"
#include "kernels/opencl/linear_inputs.cl.inc"
    ;
// clang-format on

// clang-format off
const std::string_view kRowsSource =
#include "kernels/opencl/numbers.cl.inc"
#include "kernels/opencl/groups.cl.inc"
#include "kernels/opencl/rows.cl.inc"
    ;
// clang-format on

// clang-format off
const std::string_view kTablesSource =
#include "kernels/opencl/numbers.cl.inc"
#include "kernels/opencl/elements.cl.inc"
#include "kernels/opencl/tables.cl.inc"
    ;
// clang-format on

// clang-format off
const std::string_view kAttentionSource =
#include "kernels/opencl/lanes.cl.inc"
#include "kernels/opencl/numbers.cl.inc"
#include "kernels/opencl/elements.cl.inc"
#include "kernels/opencl/attention.cl.inc"
    ;
// clang-format on

// clang-format off
const std::string_view kSampleSource =
#include "kernels/opencl/numbers.cl.inc"
#include "kernels/opencl/groups.cl.inc"
#include "kernels/opencl/sample.cl.inc"
    ;
// clang-format on

// clang-format off
const std::string_view kDrawSource =
#include "kernels/opencl/lanes.cl.inc"
#include "kernels/opencl/draw.cl.inc"
    ;
// clang-format on

}  // namespace octet::opencl
