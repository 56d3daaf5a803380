#pragma once
// The OpenCL sources of this folder, as they are compiled: what a program needs comes before it.
#include <string_view>

namespace octet::opencl {

extern const std::string_view kLinearF8Source;
extern const std::string_view kLinearDpasSource;
extern const std::string_view kLinearFloatSource;
extern const std::string_view kLinearInputsSource;
extern const std::string_view kRowsSource;
extern const std::string_view kTablesSource;
extern const std::string_view kAttentionSource;
extern const std::string_view kSampleSource;
extern const std::string_view kDrawSource;

}  // namespace octet::opencl
