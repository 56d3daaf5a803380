#include "cli/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "cli/table.h"

namespace octet {
namespace {

using testing::HasSubstr;

// A bar on a fake terminal with a clock that the test moves.
struct Fake {
  std::string output;
  double now = 100;
  size_t columns = 80;

  ProgressSink sink() {
    return {[this](std::string_view text) { output += text; }, columns};
  }
  ProgressBar::Clock clock() {
    return [this] { return now; };
  }
};

TEST(Progress, DrawsShareCountsRateAndTimeLeft) {
  Fake fake;
  ProgressBar bar("quantize", 1000 << 20, kProgressBytes, fake.sink(), fake.clock());
  fake.now += 10;
  bar.set(250 << 20);
  EXPECT_EQ(fake.output,
            "\r\x1b[Kquantize  [####.............]  25%  250.0 MiB/1000.0 MiB  25.0 MiB/s  0:30 "
            "left");
}

TEST(Progress, CountsItemsByName) {
  Fake fake;
  ProgressBar bar("load", 40, {"tensors"}, fake.sink(), fake.clock());
  fake.now += 4;
  bar.advance(10);
  EXPECT_THAT(fake.output, HasSubstr(" 25%  10/40 tensors  2.5 tensors/s  0:12 left"));
}

TEST(Progress, WithoutATotalShowsCountAndRate) {
  Fake fake;
  ProgressBar bar("read", 0, {"tokens"}, fake.sink(), fake.clock());
  fake.now += 2;
  bar.advance(100);
  EXPECT_EQ(fake.output, "\r\x1b[Kread  100 tokens  50 tokens/s");
}

TEST(Progress, DrawsAtMostTenTimesASecond) {
  Fake fake;
  ProgressBar bar("x", 1000, {"items"}, fake.sink(), fake.clock());
  for (int i = 0; i < 1000; ++i) {
    fake.now += 0.001;
    bar.advance(1);
  }
  size_t drawings = 0;
  for (size_t at = 0; (at = fake.output.find('\r', at)) != std::string::npos; ++at) ++drawings;
  EXPECT_GE(drawings, 9u);
  EXPECT_LE(drawings, 10u);
}

TEST(Progress, ClearsItsLineAtTheEndAndStaysSilentAfter) {
  Fake fake;
  {
    ProgressBar bar("x", 10, {"items"}, fake.sink(), fake.clock());
    fake.now += 1;
    bar.advance(5);
    fake.output.clear();
    bar.finish();
    EXPECT_EQ(fake.output, "\r\x1b[K");
    fake.now += 1;
    bar.advance(5);
  }
  EXPECT_EQ(fake.output, "\r\x1b[K");
}

TEST(Progress, PrintsNothingWhenItWasNeverDrawn) {
  Fake fake;
  { ProgressBar bar("x", 10, {"items"}, fake.sink(), fake.clock()); }
  EXPECT_EQ(fake.output, "");
}

TEST(Progress, GivesTheLineBackForAMessage) {
  Fake fake;
  ProgressBar bar("x", 10, {"items"}, fake.sink(), fake.clock());
  fake.now += 1;
  bar.advance(1);
  bar.clear();
  fake.output.clear();
  bar.clear();
  EXPECT_EQ(fake.output, "");
  fake.now += 1;
  bar.advance(1);
  EXPECT_THAT(fake.output, HasSubstr("2/10 items"));
}

TEST(Progress, StaysInsideTheTerminal) {
  for (size_t columns : {0, 1, 10, 20, 40, 60, 80, 200}) {
    Fake fake;
    fake.columns = columns;
    ProgressBar bar("\xc3\xa4 long label \xe6\x97\xa5\xe6\x9c\xac", 10, {"items"}, fake.sink(),
                    fake.clock());
    fake.now += 1;
    bar.advance(20);  // more than the total
    const std::string line = fake.output.substr(4);
    EXPECT_LE(display_width(line), columns > 0 ? columns - 1 : 0) << line;
  }
}

TEST(Progress, IsSilentOnAFile) {
  std::FILE* file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  EXPECT_FALSE(terminal_sink(file).write);
  std::fclose(file);
  ProgressBar bar("x", 10, kProgressBytes, {});
  bar.advance(5);
  bar.finish();
}

TEST(Progress, CountsFromManyThreads) {
  Fake fake;
  ProgressBar bar("x", 4000, {"items"}, fake.sink(), fake.clock());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) bar.advance(1);
    });
  }
  for (auto& thread : threads) thread.join();
  fake.now += 1;
  bar.advance(0);
  EXPECT_THAT(fake.output, HasSubstr("100%  4000/4000 items"));
}

TEST(Progress, WritesCountsAndTimes) {
  EXPECT_EQ(progress_count(1023, kProgressBytes), "1023 B");
  EXPECT_EQ(progress_count(1536, kProgressBytes), "1.5 KiB");
  EXPECT_EQ(progress_count(5e15, kProgressBytes), "4547.5 TiB");
  EXPECT_EQ(progress_count(12, {"x"}), "12");
  EXPECT_EQ(progress_time(7.9), "0:07");
  EXPECT_EQ(progress_time(750), "12:30");
  EXPECT_EQ(progress_time(3723), "1:02:03");
  EXPECT_EQ(progress_time(-1), "0:00");
  EXPECT_EQ(progress_time(1e300), "99:59:59");
}

}  // namespace
}  // namespace octet
