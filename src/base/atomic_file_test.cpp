#include "base/atomic_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

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
