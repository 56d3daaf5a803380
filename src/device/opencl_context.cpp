#include "device/opencl_context.h"

#include <fmt/format.h>

#include <vector>

#include "base/error.h"
#include "base/printable.h"
#include "device/opencl_cache.h"

namespace octet {
namespace {

// A compiler can say pages of warnings; its first lines name the error.
constexpr size_t kLongestLog = 2000;

std::string text_of(size_t bytes, const auto& read) {
  std::string text(bytes, '\0');
  if (bytes == 0 || read(text.size(), text.data()) != CL_SUCCESS) return {};
  while (!text.empty() && text.back() == '\0') text.pop_back();
  return text;
}

std::string build_log(cl_program program, cl_device_id device) {
  const auto& api = opencl_api();
  size_t bytes = 0;
  if (api.get_program_build_info(program, device, CL_PROGRAM_BUILD_LOG, 0, nullptr, &bytes) !=
      CL_SUCCESS) {
    return {};
  }
  std::string log = text_of(bytes, [&](size_t size, char* text) {
    return api.get_program_build_info(program, device, CL_PROGRAM_BUILD_LOG, size, text, nullptr);
  });
  if (log.size() > kLongestLog) log = log.substr(0, kLongestLog) + "...";
  return log;
}

std::string binary_of(cl_program program) {
  const auto& api = opencl_api();
  size_t bytes = 0;
  if (api.get_program_info(program, CL_PROGRAM_BINARY_SIZES, sizeof bytes, &bytes, nullptr) !=
          CL_SUCCESS ||
      bytes == 0) {
    return {};
  }
  std::string binary(bytes, '\0');
  char* place = binary.data();
  if (api.get_program_info(program, CL_PROGRAM_BINARIES, sizeof place, &place, nullptr) !=
      CL_SUCCESS) {
    return {};
  }
  return binary;
}

}  // namespace

std::vector<OpenClHandle> opencl_handles() {
  const auto& api = opencl_api();
  cl_uint count = 0;
  // A loader without a driver answers with an error of its own.
  if (api.get_platform_ids(0, nullptr, &count) != CL_SUCCESS) count = 0;
  std::vector<cl_platform_id> platforms(count);
  if (count != 0) {
    opencl_check(api.get_platform_ids(count, platforms.data(), nullptr),
                 "the OpenCL platforms cannot be listed");
  }
  std::vector<OpenClHandle> handles;
  for (cl_platform_id platform : platforms) {
    cl_uint found = 0;
    if (api.get_device_ids(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &found) != CL_SUCCESS)
      continue;
    std::vector<cl_device_id> devices(found);
    opencl_check(api.get_device_ids(platform, CL_DEVICE_TYPE_ALL, found, devices.data(), nullptr),
                 "the OpenCL devices cannot be listed");
    for (cl_device_id device : devices) handles.push_back({platform, device});
  }
  return handles;
}

std::string device_text(cl_device_id device, cl_device_info what) {
  const auto& api = opencl_api();
  size_t bytes = 0;
  if (api.get_device_info(device, what, 0, nullptr, &bytes) != CL_SUCCESS) return {};
  return text_of(bytes, [&](size_t size, char* text) {
    return api.get_device_info(device, what, size, text, nullptr);
  });
}

std::string platform_text(cl_platform_id platform, cl_platform_info what) {
  const auto& api = opencl_api();
  size_t bytes = 0;
  if (api.get_platform_info(platform, what, 0, nullptr, &bytes) != CL_SUCCESS) return {};
  return text_of(bytes, [&](size_t size, char* text) {
    return api.get_platform_info(platform, what, size, text, nullptr);
  });
}

OpenClContext::OpenClContext(OpenClHandle handle, std::filesystem::path cache,
                             const OpenClClaims& claims)
    : handle_(handle),
      cache_(std::move(cache)),
      claims_(claims),
      narrow_(claims.narrow.value_or((device_value<cl_device_type>(handle.device, CL_DEVICE_TYPE) &
                                      CL_DEVICE_TYPE_CPU) == 0)) {
  cl_int status = CL_SUCCESS;
  const auto platform = reinterpret_cast<cl_context_properties>(handle_.platform);
  const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM, platform, 0};
  context_ = opencl_api().create_context(properties, 1, &handle_.device, nullptr, nullptr, &status);
  opencl_check(status, fmt::format("the OpenCL device \"{}\" cannot be opened",
                                   printable_name(device_text(handle_.device, CL_DEVICE_NAME))));
  memory_ = make_opencl_memory(handle_.platform, handle_.device, context_);
  if (memory_ != nullptr) return;
  opencl_api().release_context(context_);
  throw_error(Code::CannotRun,
              fmt::format("the OpenCL device \"{}\" has neither unified shared memory nor shared "
                          "virtual memory",
                          printable_name(device_text(handle_.device, CL_DEVICE_NAME))),
              "a current driver has one of them; `octet probe` lists the devices that can be used");
}

OpenClContext::~OpenClContext() {
  for (const auto& [name, program] : programs_) opencl_api().release_program(program);
  opencl_api().release_context(context_);
}

cl_command_queue OpenClContext::make_queue() const {
  cl_int status = CL_SUCCESS;
  cl_command_queue queue = opencl_api().create_queue(context_, handle_.device, nullptr, &status);
  opencl_check(status, "no command queue on the OpenCL device");
  return queue;
}

cl_program OpenClContext::program(const ClProgram& source) {
  const std::lock_guard lock(mutex_);
  const auto found = programs_.find(source.name);
  if (found != programs_.end()) return found->second;
  cl_program program = build(source);
  programs_.emplace(source.name, program);
  return program;
}

cl_program OpenClContext::from_source(const ClProgram& source, std::string_view text,
                                      const std::string& options) const {
  const auto& api = opencl_api();
  const char* begin = text.data();
  const size_t bytes = text.size();
  cl_int status = CL_SUCCESS;
  cl_program program = api.create_program_with_source(context_, 1, &begin, &bytes, &status);
  opencl_check(status, fmt::format("no OpenCL program \"{}\"", source.name));
  status = api.build_program(program, 1, &handle_.device, options.c_str(), nullptr, nullptr);
  if (status == CL_SUCCESS) return program;
  const std::string log = build_log(program, handle_.device);
  api.release_program(program);
  throw_error(
      Code::Environment,
      fmt::format("the OpenCL program \"{}\" does not compile on \"{}\" (options {}): {}\n{}",
                  source.name, printable_name(device_text(handle_.device, CL_DEVICE_NAME)), options,
                  opencl_error(status), log),
      "a newer driver may help; drivers also fail when they cannot write their own cache "
      "($XDG_CACHE_HOME, else ~/.cache); --disable NAME keeps the kernels of a program out (`octet "
      "plan` names them), --device cpu does without");
}

std::string OpenClContext::key(std::string_view name) const {
  return fmt::format("{}\n{}\n{}\n{}\n{}", platform_text(handle_.platform, CL_PLATFORM_VERSION),
                     device_text(handle_.device, CL_DEVICE_NAME),
                     device_text(handle_.device, CL_DEVICE_VERSION),
                     device_text(handle_.device, CL_DRIVER_VERSION), name);
}

std::optional<std::string> OpenClContext::kept(std::string_view name) const {
  return cached_program(cache_, key(name));
}

void OpenClContext::keep(std::string_view name, std::string_view text) const {
  cache_program(cache_, key(name), text);
}

cl_program OpenClContext::build(const ClProgram& source) const {
  const auto& api = opencl_api();
  std::string options(source.options);
  const bool stands_in =
      !claims_.prelude.empty() && options.find(claims_.option) != std::string::npos;
  const std::string text = fmt::format(
      "{}{}", stands_in ? std::string_view(claims_.prelude) : std::string_view(), source.source);
  if (const size_t at = options.find(claims_.without);
      stands_in && !claims_.without.empty() && at != std::string::npos) {
    options.erase(at, claims_.without.size());
  }
  const std::string name = fmt::format("{}\n{}", options, text);
  if (const auto binary = kept(name)) {
    const auto* bytes = reinterpret_cast<const unsigned char*>(binary->data());
    const size_t size = binary->size();
    cl_int loaded = CL_SUCCESS;
    cl_int status = CL_SUCCESS;
    cl_program program = api.create_program_with_binary(context_, 1, &handle_.device, &size, &bytes,
                                                        &loaded, &status);
    if (status == CL_SUCCESS && loaded == CL_SUCCESS &&
        api.build_program(program, 1, &handle_.device, options.c_str(), nullptr, nullptr) ==
            CL_SUCCESS) {
      return program;
    }
    // A binary that the driver does not take any more: made anew below.
    if (program != nullptr) api.release_program(program);
  }
  cl_program program = from_source(source, text, options);
  const std::string binary = binary_of(program);
  if (!binary.empty()) keep(name, binary);
  return program;
}

}  // namespace octet
