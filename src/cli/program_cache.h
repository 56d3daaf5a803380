#pragma once
// The folder of compiled OpenCL programs.
#include <filesystem>

namespace octet {

// Where compiled OpenCL programs are kept: $XDG_CACHE_HOME/octet/opencl, else below ~/.cache; empty
// without a home.
std::filesystem::path program_cache();

// Says on the standard error, once, when programs cannot be kept there: drivers keep their own
// beside ours, and some end the process when they cannot.
void warn_about_program_cache();

}  // namespace octet
