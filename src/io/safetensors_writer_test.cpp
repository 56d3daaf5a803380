#include "io/safetensors_writer.h"

#include <sys/resource.h>

#include <csignal>

#include "base/mapped_file.h"
#include "io/safetensors_header.h"
#include "testing/broken_files.h"

namespace octet {
namespace {

using testing::HasSubstr;

class SafetensorsWriterTest : public testing::Test {
 protected:
  std::filesystem::path file() const { return folder_.path() / "model.safetensors"; }
  static std::span<const std::byte> bytes(std::string_view text) {
    return std::as_bytes(std::span(text));
  }
  static std::vector<TensorSpec> two() {
    return {{"codes", DType::F8E4M3, {1, 3}}, {"scale", DType::F32, {1}}};
  }

  TinyFolder folder_;
  NameArena arena_;
};

TEST_F(SafetensorsWriterTest, WritesWideTypesFirstInTheLibrarysOwnBytes) {
  const std::pair<std::string, std::string> metadata{"format", "pt"};
  SafetensorsWriter writer(file(), two(), std::span(&metadata, 1));
  writer.write("codes", bytes("abc"));
  writer.write("scale", bytes("1234"));
  writer.finish();
  const std::string json =
      R"({"__metadata__":{"format":"pt"},"scale":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
      R"("codes":{"dtype":"F8_E4M3","shape":[1,3],"data_offsets":[4,7]}})";
  std::string header = json;
  header.resize((json.size() + 7) / 8 * 8, ' ');
  EXPECT_EQ(read_text_file(file(), 10'000), safetensors_bytes(header, 0) + "1234abc");
  EXPECT_EQ(writer.file_bytes(), std::filesystem::file_size(file()));
}

TEST_F(SafetensorsWriterTest, TakesATensorInPartsAndTensorsInAnyOrder) {
  SafetensorsWriter writer(file(), two());
  writer.write("codes", bytes("a"));
  writer.write("scale", bytes("12"));
  writer.write("codes", bytes("bc"));
  writer.write("scale", bytes("34"));
  writer.finish();
  EXPECT_THAT(read_text_file(file(), 10'000), testing::EndsWith("1234abc"));
  HeaderReader reader(arena_);
  EXPECT_EQ(reader.read(file(), false).tensors.size(), 2U);
}

TEST_F(SafetensorsWriterTest, AnEmptyFileIsAFile) {
  SafetensorsWriter writer(file(), {});
  writer.finish();
  HeaderReader reader(arena_);
  EXPECT_TRUE(reader.read(file(), false).tensors.empty());
}

TEST_F(SafetensorsWriterTest, NamesAreEscaped) {
  SafetensorsWriter writer(file(), {{"a\"\\\n", DType::U8, {1}}});
  writer.write("a\"\\\n", bytes("x"));
  writer.finish();
  HeaderReader reader(arena_);
  EXPECT_EQ(reader.read(file(), false).tensors[0].name, "a\"\\\n");
}

TEST_F(SafetensorsWriterTest, AnUnfinishedFileIsRemoved) {
  {
    SafetensorsWriter writer(file(), two());
    writer.write("codes", bytes("abc"));
    EXPECT_TRUE(std::filesystem::exists(file()));
    EXPECT_THROW(writer.finish(), Error);
  }
  EXPECT_FALSE(std::filesystem::exists(file()));
}

TEST_F(SafetensorsWriterTest, TooManyBytesAndUnknownNamesAreBugs) {
  SafetensorsWriter writer(file(), two());
  EXPECT_THROW(writer.write("codes", bytes("abcd")), Error);
  EXPECT_THROW(writer.write("ghost", bytes("a")), Error);
}

TEST_F(SafetensorsWriterTest, NamesMustDifferAndBeText) {
  EXPECT_THAT(bad_input([&] {
                SafetensorsWriter(file(), {{"a", DType::U8, {1}}, {"a", DType::U8, {1}}});
              }),
              HasSubstr("\"a\" is given twice"));
  bad_input([&] { SafetensorsWriter(file(), {{"__metadata__", DType::U8, {1}}}); });
  bad_input([&] { SafetensorsWriter(file(), {{"\xff", DType::U8, {1}}}); });
  EXPECT_FALSE(std::filesystem::exists(file()));
}

Error environment_error(const auto& call) {
  try {
    call();
  } catch (const Error& e) {
    return e;
  }
  return {Code::Bug, "nothing was thrown"};
}

TEST_F(SafetensorsWriterTest, AnExistingFileIsNeverTouched) {
  write_bytes(file(), "precious");
  const Error error = environment_error([&] { SafetensorsWriter(file(), two()); });
  EXPECT_EQ(error.code(), Code::Environment);
  EXPECT_EQ(read_text_file(file(), 100), "precious");
}

TEST_F(SafetensorsWriterTest, AMissingFolderIsNamed) {
  const Error error = environment_error(
      [&] { SafetensorsWriter(folder_.path() / "none" / "a.safetensors", two()); });
  EXPECT_EQ(error.code(), Code::Environment);
  EXPECT_THAT(error.message(), HasSubstr("none/a.safetensors"));
}

// A limit on the size of files stands for a full disk: both fail the reservation.
TEST_F(SafetensorsWriterTest, ADiskThatIsTooSmallFailsAtOnceAndLeavesNothing) {
  rlimit old{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit low{1 << 20, old.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &low), 0);
  const Error error = environment_error([&] {
    SafetensorsWriter writer(file(), {{"a", DType::U8, {2 << 20}}});
    writer.write("a", std::vector<std::byte>(2 << 20));
  });
  ::setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(error.code(), Code::Environment) << error.message();
  EXPECT_THAT(error.message(), AllOf(HasSubstr("cannot write"), HasSubstr("model.safetensors")));
  EXPECT_FALSE(std::filesystem::exists(file()));
}

}  // namespace
}  // namespace octet
