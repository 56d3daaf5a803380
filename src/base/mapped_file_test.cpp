#include "base/mapped_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <utility>

#include "base/error.h"

#if defined(__has_feature)
#define OCTET_HAS_FEATURE(x) __has_feature(x)
#else
#define OCTET_HAS_FEATURE(x) 0
#endif

namespace octet {
namespace {

namespace fs = std::filesystem;

class MappedFileTest : public testing::Test {
 protected:
  void SetUp() override {
    dir_ = fs::path(testing::TempDir()) /
           fmt::format("octet-map-{}-{}", ::getpid(),
                       testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directories(dir_);
  }
  void TearDown() override { fs::remove_all(dir_); }

  fs::path file(const std::string& text) const {
    const fs::path path = dir_ / "file.bin";
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }

  fs::path dir_;
};

std::string said(const auto& call) {
  try {
    call();
  } catch (const Error& e) {
    return fmt::format("{} {}; {}", exit_status(e.code()), e.message(), e.hint());
  }
  return "nothing was thrown";
}

Code code_of(const auto& call) {
  try {
    call();
  } catch (const Error& e) {
    return e.code();
  }
  return Code::Bug;
}

std::string text_of(const MappedFile& map) {
  return {reinterpret_cast<const char*>(map.bytes().data()), map.bytes().size()};
}

TEST_F(MappedFileTest, ShowsTheBytesOfTheFile) {
  const MappedFile map(file("octets"));
  EXPECT_EQ(text_of(map), "octets");
}

TEST_F(MappedFileTest, AnEmptyFileHasNoBytes) {
  const MappedFile map(file(""));
  EXPECT_TRUE(map.bytes().empty());
}

TEST_F(MappedFileTest, MovesItsMapping) {
  MappedFile map(file("octets"));
  MappedFile other(std::move(map));
  EXPECT_EQ(text_of(other), "octets");
  MappedFile third;
  third = std::move(other);
  EXPECT_EQ(text_of(third), "octets");
  // NOLINTNEXTLINE(bugprone-use-after-move): the state after a move is what is tested
  EXPECT_TRUE(other.bytes().empty());
}

TEST_F(MappedFileTest, AnAbsentFileIsBadInput) {
  EXPECT_EQ(code_of([&] { MappedFile map(dir_ / "absent"); }), Code::BadInput);
}

TEST_F(MappedFileTest, ALinkThatLeadsNowhereOrInACircleIsNamedAsSuch) {
  fs::create_symlink("gone", dir_ / "link");
  EXPECT_EQ(said([&] { MappedFile map(dir_ / "link"); }),
            fmt::format("2 cannot open {}: it is a link to gone, which is not there; restore what "
                        "the link leads to, or download the file again",
                        (dir_ / "link").string()));
  EXPECT_TRUE(is_there(dir_ / "link"));
  EXPECT_FALSE(is_there(dir_ / "none"));
  EXPECT_FALSE(is_there(dir_ / "none" / "none"));
  fs::create_symlink("circle", dir_ / "circle");
  EXPECT_TRUE(is_there(dir_ / "circle"));
  const std::string circle = said([&] { MappedFile map(dir_ / "circle"); });
  EXPECT_TRUE(circle.starts_with("4 cannot open ")) << circle;
  EXPECT_NE(circle.find("its symbolic links lead in a circle"), std::string::npos) << circle;
}

// A sanitiser ends the process when it gets no memory of its own under the limit.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && \
    !OCTET_HAS_FEATURE(address_sanitizer) && !OCTET_HAS_FEATURE(thread_sanitizer)
TEST_F(MappedFileTest, AFileThatDoesNotFitTheAddressSpaceAsksForMemory) {
  const fs::path path = file("x");
  fs::resize_file(path, uintmax_t{1} << 30);  // sparse
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_AS, &before), 0);
  const rlimit less{rlim_t{1} << 30, before.rlim_max};
  if (::setrlimit(RLIMIT_AS, &less) != 0) GTEST_SKIP() << "the limit cannot be set";
  const std::string message = said([&] { MappedFile map(path); });
  ::setrlimit(RLIMIT_AS, &before);
  EXPECT_TRUE(message.starts_with("4 cannot map ")) << message;
  EXPECT_NE(message.find("; free memory, or raise the limit of address space"), std::string::npos)
      << message;
}
#endif

TEST_F(MappedFileTest, AFolderOrAPipeIsBadInputAndDoesNotBlock) {
  EXPECT_EQ(code_of([&] { MappedFile map(dir_); }), Code::BadInput);
  ASSERT_EQ(::mkfifo((dir_ / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(code_of([&] { MappedFile map(dir_ / "pipe"); }), Code::BadInput);
}

TEST_F(MappedFileTest, AFileWithoutPermissionIsTheEnvironment) {
  const fs::path path = file("secret");
  fs::permissions(path, fs::perms::none);
  if (::access(path.c_str(), R_OK) == 0) GTEST_SKIP() << "this user may read everything";
  EXPECT_EQ(code_of([&] { MappedFile map(path); }), Code::Environment);
}

TEST_F(MappedFileTest, RandomAccessReadsAnyPart) {
  const RandomAccessFile in(file("0123456789"));
  char part[4] = {};
  in.read(3, std::as_writable_bytes(std::span(part)));
  EXPECT_EQ(std::string_view(part, 4), "3456");
  EXPECT_EQ(in.size(), 10U);
}

TEST_F(MappedFileTest, ReadingPastTheEndNamesTheFileAndTheByte) {
  const RandomAccessFile in(file("0123"));
  char part[4] = {};
  try {
    in.read(2, std::as_writable_bytes(std::span(part)));
    FAIL() << "read past the end";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::Environment);
    EXPECT_NE(e.message().find("file.bin ends at byte 4"), std::string::npos) << e.message();
  }
}

TEST_F(MappedFileTest, ReadTextFileRefusesMoreThanTheLimit) {
  EXPECT_EQ(read_text_file(file("abc"), 3), "abc");
  EXPECT_EQ(code_of([&] { read_text_file(file("abcd"), 3); }), Code::BadInput);
}

TEST_F(MappedFileTest, AnAddressTellsItsFileWhileItIsMapped) {
  const fs::path path = dir_ / "map\n.bin";
  std::ofstream(path) << "0123456789";
  const std::byte* at = nullptr;
  {
    MappedFile first(path);
    const MappedFile file = std::move(first);
    at = file.bytes().data();
    ASSERT_NE(mapped_path(at), nullptr);
    EXPECT_TRUE(std::string_view(mapped_path(at + 9)).ends_with("map\\x0a.bin"));
    EXPECT_EQ(mapped_path(&at), nullptr);
  }
  EXPECT_EQ(mapped_path(at), nullptr);
}

}  // namespace
}  // namespace octet
