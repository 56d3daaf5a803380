#include "base/atomic_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <iterator>

#include "base/error.h"

namespace octet {
namespace {

namespace fs = std::filesystem;

class ReplaceFile : public ::testing::Test {
 protected:
  ReplaceFile() : folder_(fs::temp_directory_path() / fmt::format("octet-replace-{}", ::getpid())) {
    fs::create_directories(folder_);
  }
  ~ReplaceFile() override { fs::remove_all(folder_); }

  static std::string read(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  ptrdiff_t files() const {
    return std::distance(fs::directory_iterator(folder_), fs::directory_iterator());
  }

  fs::path folder_;
};

TEST_F(ReplaceFile, MakesAFileAndReplacesIt) {
  const fs::path path = folder_ / "a";
  replace_file(path, "first");
  EXPECT_EQ(read(path), "first");
  replace_file(path, "second");
  EXPECT_EQ(read(path), "second");
  EXPECT_EQ(files(), 1);
}

TEST_F(ReplaceFile, ALinkStaysALink) {
  replace_file(folder_ / "a", "first");
  fs::create_symlink("a", folder_ / "link");
  replace_file(folder_ / "link", "second");
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_EQ(read(folder_ / "a"), "second");
}

TEST_F(ReplaceFile, AFifoIsWrittenIntoAndStays) {
  const fs::path fifo = folder_ / "fifo", link = folder_ / "link";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  fs::create_symlink("fifo", link);
  const int reader = ::open(fifo.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  ASSERT_GE(reader, 0);
  for (const fs::path& path : {fifo, link}) {
    replace_file(path, "text");
    std::array<char, 16> got{};
    EXPECT_EQ(::read(reader, got.data(), got.size()), 4) << path;
    EXPECT_STREQ(got.data(), "text");
  }
  ::close(reader);
  EXPECT_TRUE(fs::is_fifo(fifo));
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(files(), 2);
}

TEST_F(ReplaceFile, AnOpenFileIsWrittenToItsEnd) {
  const fs::path path = folder_ / "a";
  replace_file(path, "first");
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  replace_file(fmt::format("/proc/self/fd/{}", fd), " second");
  struct stat opened {};
  struct stat named {};
  ASSERT_EQ(::fstat(fd, &opened), 0);
  ASSERT_EQ(::stat(path.c_str(), &named), 0);
  ::close(fd);
  EXPECT_EQ(opened.st_ino, named.st_ino);
  EXPECT_EQ(read(path), "first second");
}

TEST_F(ReplaceFile, TheModeStays) {
  const fs::path path = folder_ / "a";
  for (const auto mode : {fs::perms{0600}, fs::perms{0640}, fs::perms{0444}}) {
    replace_file(path, "first");
    fs::permissions(path, mode);
    replace_file(path, "second");
    EXPECT_EQ(fs::status(path).permissions(), mode);
    EXPECT_EQ(read(path), "second");
  }
}

TEST_F(ReplaceFile, AFolderAndAFileInNoFolderAreRefusedAndLeaveNothing) {
  fs::create_directory(folder_ / "d");
  for (const char* name : {"d", "none/file"}) {
    try {
      replace_file(folder_ / name, "text");
      ADD_FAILURE() << name;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::BadInput) << name;
    }
  }
  EXPECT_EQ(files(), 1);
}

TEST_F(ReplaceFile, AFileThatCannotBeWrittenIsAnErrorOfTheEnvironment) {
  const fs::path path = folder_ / std::string(250, 'x');  // with its work name over NAME_MAX
  try {
    replace_file(path, "text");
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::Environment);
  }
  EXPECT_EQ(files(), 0);
}

}  // namespace
}  // namespace octet
