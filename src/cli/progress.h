#pragma once
// A progress bar for people who wait at a terminal; silent everywhere else.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>

namespace octet {

// Where a bar is drawn. Without `write` nothing is drawn.
struct ProgressSink {
  std::function<void(std::string_view)> write = {};
  size_t columns = 80;  // width of the terminal
};

// A sink that draws on `stream` when it is a terminal that moves its cursor, else the silent one.
ProgressSink terminal_sink(std::FILE* stream);

// What is counted: items by name ("tensors"), or bytes.
struct ProgressUnit {
  std::string_view name = "";  // empty: bytes, shown as KiB, MiB, GiB
};
inline constexpr ProgressUnit kProgressBytes{};

// "12", "1.5 MiB": a count as a bar shows it.
std::string progress_count(double count, ProgressUnit unit);
// "0:07", "12:30", "1:02:03".
std::string progress_time(double seconds);

// Draws label, bar, percent, counts, rate and time left, at most ten times a second; the destructor
// clears the line. Thread: all functions may be called from any.
class ProgressBar {
 public:
  using Clock = std::function<double()>;  // seconds, never back

  // `total` 0 means unknown: no bar, no percent, no time left. The clock is for tests.
  ProgressBar(std::string label, int64_t total, ProgressUnit unit = kProgressBytes,
              ProgressSink sink = terminal_sink(stderr), Clock clock = {});
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void advance(int64_t count);
  void set(int64_t done);
  // Removes the line until the next drawing, so that a message can be printed in its place.
  void clear();
  // Removes the line for good.
  void finish();

 private:
  void draw_if_due();
  std::string line(double now) const;

  const std::string label_;
  const int64_t total_;
  const ProgressUnit unit_;
  const ProgressSink sink_;
  const Clock clock_;
  const double start_;
  std::atomic<int64_t> done_{0};
  std::mutex mutex_;  // guards the fields below and the sink
  double next_draw_;
  bool drawn_ = false;
  bool finished_ = false;
};

}  // namespace octet
