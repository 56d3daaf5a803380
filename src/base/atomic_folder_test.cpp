#include "base/atomic_folder.h"
#include "base/atomic_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <utility>

#include "base/error.h"
#include "base/mapped_file.h"

namespace octet {
namespace {

namespace fs = std::filesystem;

class AtomicFolderTest : public testing::Test {
 protected:
  void SetUp() override {
    dir_ = fs::path(testing::TempDir()) /
           fmt::format("octet-atomic-{}-{}", ::getpid(),
                       testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directories(dir_);
  }
  void TearDown() override { fs::remove_all(dir_); }

  size_t entries() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(dir_), {}));
  }

  fs::path dir_;
};

TEST_F(AtomicFolderTest, NothingIsAtTheTargetBeforeCommit) {
  AtomicFolder out(dir_ / "model", Existing::Refuse);
  write_file(out.path() / "a", "1");
  EXPECT_FALSE(fs::exists(dir_ / "model"));
  out.commit();
  EXPECT_EQ(read_text_file(dir_ / "model" / "a", 10), "1");
  EXPECT_EQ(entries(), 1U);
}

TEST_F(AtomicFolderTest, WithoutCommitNothingRemains) {
  {
    AtomicFolder out(dir_ / "model", Existing::Refuse);
    write_file(out.path() / "a", "1");
  }
  EXPECT_EQ(entries(), 0U);
}

TEST_F(AtomicFolderTest, AMovedFromFolderRemovesNothing) {
  AtomicFolder out(dir_ / "model", Existing::Refuse);
  AtomicFolder other(std::move(out));
  write_file(other.path() / "a", "1");
  // NOLINTNEXTLINE(bugprone-use-after-move): the state after a move is what is tested
  { AtomicFolder gone(std::move(out)); }
  other.commit();
  EXPECT_TRUE(fs::exists(dir_ / "model" / "a"));
}

TEST_F(AtomicFolderTest, TakesATrailingSlash) {
  AtomicFolder out(dir_ / "model/", Existing::Refuse);
  out.commit();
  EXPECT_TRUE(fs::is_directory(dir_ / "model"));
}

TEST_F(AtomicFolderTest, MakesNoParents) {
  try {
    const AtomicFolder out(dir_ / "x" / "y" / "model", Existing::Refuse);
    FAIL() << "made its parents";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::BadInput);
    EXPECT_NE(e.hint().find("mkdir -p '" + (dir_ / "x" / "y").string() + "'"), std::string::npos)
        << e.hint();
  }
  EXPECT_EQ(entries(), 0U);
}

TEST_F(AtomicFolderTest, AnEmptyTargetIsFilled) {
  fs::create_directory(dir_ / "model");
  AtomicFolder out(dir_ / "model", Existing::Refuse);
  write_file(out.path() / "a", "1");
  out.commit();
  EXPECT_TRUE(fs::exists(dir_ / "model" / "a"));
}

TEST_F(AtomicFolderTest, AFullTargetIsRefusedAndKept) {
  fs::create_directory(dir_ / "model");
  write_file(dir_ / "model" / "old", "1");
  EXPECT_THROW(AtomicFolder(dir_ / "model", Existing::Refuse), Error);
  EXPECT_TRUE(fs::exists(dir_ / "model" / "old"));
  EXPECT_EQ(entries(), 1U);
}

TEST_F(AtomicFolderTest, ReplaceSwapsTheWholeFolder) {
  fs::create_directory(dir_ / "model");
  write_file(dir_ / "model" / "old", "1");
  AtomicFolder out(dir_ / "model", Existing::Replace);
  write_file(out.path() / "new", "2");
  EXPECT_TRUE(fs::exists(dir_ / "model" / "old"));
  out.commit();
  EXPECT_FALSE(fs::exists(dir_ / "model" / "old"));
  EXPECT_TRUE(fs::exists(dir_ / "model" / "new"));
  EXPECT_EQ(entries(), 1U);
}

TEST_F(AtomicFolderTest, AFileAtTheTargetIsRefusedAlways) {
  write_file(dir_ / "model", "1");
  EXPECT_THROW(AtomicFolder(dir_ / "model", Existing::Replace), Error);
  EXPECT_THROW(AtomicFolder(fs::path(), Existing::Refuse), Error);
  EXPECT_THROW(AtomicFolder(dir_ / "..", Existing::Replace), Error);
}

TEST_F(AtomicFolderTest, WriteFileNamesTheFullDisk) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "no /dev/full on this system";
  try {
    write_file("/dev/full", "x");
    FAIL() << "wrote to a full disk";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::Environment);
    EXPECT_NE(e.message().find("/dev/full: No space left"), std::string::npos) << e.message();
  }
}

TEST_F(AtomicFolderTest, WhatADeadProcessLeftGoesAwayWithTheNext) {
  const pid_t dead = ::fork();
  if (dead == 0) ::_exit(0);
  ASSERT_EQ(::waitpid(dead, nullptr, 0), dead);
  const fs::path left = dir_ / fmt::format(".out.partial-{}", dead);
  const fs::path kept[] = {dir_ / fmt::format(".out.partial-{}", ::getppid()),
                           dir_ / fmt::format(".other.partial-{}", dead),
                           dir_ / fmt::format(".out.old-{}", dead), dir_ / ".out.partial-x"};
  fs::create_directories(left / "inside");
  for (const fs::path& path : kept) fs::create_directory(path);
  AtomicFolder out(dir_ / "out", Existing::Refuse);
  EXPECT_FALSE(fs::exists(left));
  for (const fs::path& path : kept) EXPECT_TRUE(fs::exists(path)) << path;
}

TEST_F(AtomicFolderTest, WhatAnotherContainerWorksOnStays) {
  // Its process has a number that is nobody's here; it holds the lock.
  const pid_t dead = ::fork();
  if (dead == 0) ::_exit(0);
  ASSERT_EQ(::waitpid(dead, nullptr, 0), dead);
  const fs::path work = dir_ / fmt::format(".out.partial-{}", dead);
  fs::create_directory(work);
  const int lock = ::open(work.c_str(), O_RDONLY | O_DIRECTORY);
  ASSERT_EQ(::flock(lock, LOCK_EX | LOCK_NB), 0);
  { const AtomicFolder out(dir_ / "out", Existing::Refuse); }
  EXPECT_TRUE(fs::exists(work));
  ::close(lock);
  { const AtomicFolder out(dir_ / "out", Existing::Refuse); }
  EXPECT_FALSE(fs::exists(work));
}

TEST_F(AtomicFolderTest, UnfinishedFoldersGoAwayWithTheProcess) {
  AtomicFolder out(dir_ / "out", Existing::Refuse);
  AtomicFolder done(dir_ / "done", Existing::Refuse);
  write_file(out.path() / "a", "1");
  write_file(out.path() / ".b", "2");
  write_file(done.path() / "a", "1");
  done.commit();
  remove_unfinished_folders();
  EXPECT_FALSE(fs::exists(out.path()));
  EXPECT_TRUE(fs::exists(dir_ / "done" / "a"));
}

}  // namespace
}  // namespace octet
