// The OpenCL device that the environment names: what it refuses and how it says so, and its cache
// of compiled programs.
#include "device/opencl.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/error.h"
#include "testing/tiny_checkpoint.h"

namespace octet {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::string_view kOptions = "-cl-std=CL1.2";
constexpr ClGrid kOneItem{};

constexpr std::string_view kAddSource = R"cl(
__kernel void add(__global int* place, int number) { place[0] += number; }
)cl";
constexpr ClProgram kAdd{"add", kAddSource, kOptions};

OpenClStream& opencl(Stream& stream) {
  return static_cast<OpenClStream&>(stream);
}

// 3 + 4 by a kernel.
int seven(Device& device) {
  const auto stream = device.make_stream();
  const Buffer place = device.allocate(sizeof(int));
  const int three = 3;
  stream->upload(place.data(), &three, sizeof three);
  opencl(*stream).enqueue(kAdd, "add", kOneItem, {place.data(), 4});
  int got = 0;
  stream->download(&got, place.data(), sizeof got);
  return got;
}

Error error_of(const auto& action) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "nothing was thrown";
  return Error(Code::Bug, "");
}

TEST(OpenClDevice, RunsAKernel) {
  EXPECT_EQ(seven(*make_opencl_device(0, {})), 7);
}

TEST(OpenClDevice, ThatIsNotThereNamesThoseThatAre) {
  const Error error = error_of([] { make_opencl_device(99, {}); });
  EXPECT_EQ(error.code(), Code::CannotRun);
  EXPECT_THAT(error.message(), HasSubstr("no OpenCL device 99"));
  EXPECT_THAT(error.hint(), AllOf(HasSubstr("devices seen: opencl:0"),
                                  HasSubstr(list_opencl_devices().front().name)));
}

TEST(OpenClDevice, RefusesAnAllocationOverItsLimit) {
  const auto device = make_opencl_device(0, {});
  const uint64_t limit = device->info().max_allocation_bytes;
  ASSERT_GT(limit, 0U);
  const Error error = error_of([&] { device->allocate(limit + 1); });
  EXPECT_EQ(error.code(), Code::CannotRun);
  EXPECT_THAT(error.message(),
              AllOf(HasSubstr(std::to_string(limit)), HasSubstr(std::to_string(limit + 1))));
  EXPECT_THAT(error.hint(), HasSubstr("--max-model-len"));
}

TEST(OpenClDevice, ProgramThatDoesNotCompileIsReportedAtTheNextWait) {
  const auto device = make_opencl_device(0, {});
  const auto stream = device->make_stream();
  const Buffer place = device->allocate(sizeof(int));
  const ClProgram broken{"broken", "__kernel void add(__global int* p) { p[0] = nowhere; }",
                         kOptions};
  opencl(*stream).enqueue(broken, "add", kOneItem, {place.data()});
  // What follows does nothing, and every wait says the first failure.
  opencl(*stream).enqueue(kAdd, "add", kOneItem, {place.data(), 4});
  int got = 0;
  for (int i = 0; i < 2; ++i) {
    const Error error = error_of([&] { stream->download(&got, place.data(), sizeof got); });
    EXPECT_EQ(error.code(), Code::Environment);
    EXPECT_THAT(error.message(), AllOf(HasSubstr("\"broken\" does not compile"),
                                       HasSubstr(std::string(kOptions)), HasSubstr("nowhere")));
    EXPECT_THAT(error.hint(), HasSubstr("--device cpu"));
  }
  EXPECT_EQ(seven(*device), 7) << "another stream is not spoiled";
}

TEST(OpenClDevice, KernelThatAProgramLacksIsNamed) {
  const auto device = make_opencl_device(0, {});
  const auto stream = device->make_stream();
  opencl(*stream).enqueue(kAdd, "subtract", kOneItem, {});
  const Error error = error_of([&] { stream->wait(); });
  EXPECT_THAT(error.message(), AllOf(HasSubstr("\"add\""), HasSubstr("subtract")));
}

// Files of a cache by name, as bytes.
std::map<std::string, std::string> entries(const fs::path& cache) {
  std::map<std::string, std::string> all;
  for (const auto& entry : fs::directory_iterator(cache)) {
    std::ifstream file(entry.path(), std::ios::binary);
    all[entry.path().filename()] = {std::istreambuf_iterator<char>(file), {}};
  }
  return all;
}

void write_entries(const fs::path& cache, const std::map<std::string, std::string>& all) {
  fs::create_directories(cache);
  for (const auto& [name, bytes] : all) std::ofstream(cache / name, std::ios::binary) << bytes;
}

// Every entry with its binary replaced, so that the checksum of the file still holds.
std::string with_binary(const std::string& entry, const std::string& binary) {
  // The header: sizes of key and binary and a checksum in hexadecimal, then the key.
  const size_t line = entry.find('\n');
  const size_t key = std::stoull(entry.substr(line - 50, 16), nullptr, 16);
  uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : binary) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  char numbers[64];
  std::snprintf(numbers, sizeof numbers, "%016zx %016zx %016zx", key, binary.size(),
                static_cast<size_t>(hash));
  return entry.substr(0, line - 50) + numbers + entry.substr(line, key + 2) + binary;
}

TEST(OpenClCache, HoldsWhatWasCompiledAndIsOnlyReadThen) {
  const TinyFolder folder;
  EXPECT_EQ(seven(*make_opencl_device(0, folder.path() / "first")), 7);
  const auto made = entries(folder.path() / "first");
  ASSERT_GE(made.size(), 2U) << "the features and the program";
  // Opened contexts stay open: another path is another one.
  write_entries(folder.path() / "second", made);
  for (const auto& entry : fs::directory_iterator(folder.path() / "second"))
    fs::permissions(entry.path(), fs::perms::owner_read);
  EXPECT_EQ(seven(*make_opencl_device(0, folder.path() / "second")), 7);
  EXPECT_EQ(entries(folder.path() / "second"), made);
}

TEST(OpenClCache, BrokenEntriesAreMadeAnew) {
  const TinyFolder folder;
  EXPECT_EQ(seven(*make_opencl_device(0, folder.path() / "sound")), 7);
  const auto sound = entries(folder.path() / "sound");
  using Damage = std::function<std::string(const std::string&)>;
  const std::pair<const char*, Damage> damages[] = {
      {"empty", [](const std::string&) { return std::string(); }},
      {"cut", [](const std::string& e) { return e.substr(0, e.size() - 7); }},
      {"flipped",
       [](std::string e) {
         e[e.size() - 9] = static_cast<char>(e[e.size() - 9] ^ 1);
         return e;
       }},
      {"another file", [](const std::string&) { return std::string(5000, 'x'); }},
      // Whole by its checksum, and not what the driver made.
      {"not a binary", [](const std::string& e) { return with_binary(e, "no program at all"); }},
  };
  for (const auto& [what, damage] : damages) {
    const fs::path cache = folder.path() / what;
    std::map<std::string, std::string> broken;
    for (const auto& [name, bytes] : sound) broken[name] = damage(bytes);
    write_entries(cache, broken);
    EXPECT_EQ(seven(*make_opencl_device(0, cache)), 7) << what;
    const auto now = entries(cache);
    EXPECT_EQ(now.size(), sound.size()) << what;
    for (const auto& [name, bytes] : now)
      EXPECT_TRUE(bytes != broken[name] || what == std::string("not a binary")) << what;
  }
}

TEST(OpenClCache, ThatCannotBeWrittenIsDoneWithout) {
  const TinyFolder folder;
  std::ofstream(folder.path() / "file") << "not a folder";
  EXPECT_EQ(seven(*make_opencl_device(0, folder.path() / "file")), 7);
  EXPECT_EQ(seven(*make_opencl_device(0, "/proc/no/such/folder")), 7);
}

TEST(OpenClClaims, AreOfTestsAlone) {
  const auto device = make_opencl_device(0, {});
  OpenClClaims claims;
  claims.drops = device->info().features;
  EXPECT_TRUE(make_opencl_device(0, {}, claims)->info().features.empty());
  EXPECT_EQ(make_opencl_device(0, {})->info().features, device->info().features);
}

}  // namespace
}  // namespace octet
