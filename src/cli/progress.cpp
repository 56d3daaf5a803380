#include "cli/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdlib>

#include "cli/table.h"

namespace octet {
namespace {

constexpr double kInterval = 0.1;  // seconds between drawings: smooth to the eye, no cost
constexpr size_t kWidestBar = 40;
constexpr size_t kNarrowestBar = 8;
constexpr std::string_view kClear = "\r\x1b[K";  // to column 0, erase to the end (ECMA-48 EL)

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::string rate_text(double rate, ProgressUnit unit) {
  if (unit.name.empty()) return progress_count(rate, unit) + "/s";
  return fmt::format("{:.{}f} {}/s", rate, rate < 10 ? 1 : 0, unit.name);
}

// `text` without the characters at its end that do not fit in `columns`.
std::string_view cut(std::string_view text, size_t columns) {
  while (display_width(text) > columns) {
    // A character is its first byte and the continuation bytes (10xxxxxx) after it.
    while (text.size() > 1 && (static_cast<unsigned char>(text.back()) & 0xC0) == 0x80) {
      text.remove_suffix(1);
    }
    text.remove_suffix(1);
  }
  return text;
}

}  // namespace

ProgressSink terminal_sink(std::FILE* stream) {
  const char* term = std::getenv("TERM");
  const bool dumb = term == nullptr || std::string_view(term) == "dumb";
  if (dumb || isatty(fileno(stream)) == 0) return {};
  ProgressSink sink;
  winsize size = {};
  if (ioctl(fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 0) sink.columns = size.ws_col;
  sink.write = [stream](std::string_view text) {
    std::fwrite(text.data(), 1, text.size(), stream);
    std::fflush(stream);
  };
  return sink;
}

std::string progress_count(double count, ProgressUnit unit) {
  if (!unit.name.empty()) return fmt::format("{:.0f}", count);
  constexpr std::array<std::string_view, 5> kUnits{"B", "KiB", "MiB", "GiB", "TiB"};
  size_t power = 0;
  while (count >= 1024 && power + 1 < kUnits.size()) {
    count /= 1024;
    ++power;
  }
  return fmt::format("{:.{}f} {}", count, power == 0 ? 0 : 1, kUnits[power]);
}

std::string progress_time(double seconds) {
  const auto whole = static_cast<int64_t>(std::clamp(seconds, 0.0, 359999.0));
  const int64_t hours = whole / 3600;
  const int64_t minutes = whole / 60 % 60;
  if (hours > 0) return fmt::format("{}:{:02}:{:02}", hours, minutes, whole % 60);
  return fmt::format("{}:{:02}", minutes, whole % 60);
}

ProgressBar::ProgressBar(std::string label, int64_t total, ProgressUnit unit, ProgressSink sink,
                         Clock clock)
    : label_(std::move(label)),
      total_(total),
      unit_(unit),
      sink_(std::move(sink)),
      clock_(clock ? std::move(clock) : steady_seconds),
      start_(clock_()),
      next_draw_(start_ + kInterval) {}

ProgressBar::~ProgressBar() {
  try {
    finish();
  } catch (...) {  // a line that stays on the terminal is no reason to end the program
  }
}

void ProgressBar::advance(int64_t count) {
  done_.fetch_add(count, std::memory_order_relaxed);
  draw_if_due();
}

void ProgressBar::set(int64_t done) {
  done_.store(done, std::memory_order_relaxed);
  draw_if_due();
}

void ProgressBar::draw_if_due() {
  if (!sink_.write) return;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock() || finished_) return;  // another thread is drawing
  const double now = clock_();
  if (now < next_draw_) return;
  next_draw_ = now + kInterval;
  sink_.write(std::string(kClear) + line(now));
  drawn_ = true;
}

void ProgressBar::clear() {
  const std::lock_guard lock(mutex_);
  if (!drawn_) return;
  sink_.write(kClear);
  drawn_ = false;
}

void ProgressBar::finish() {
  clear();
  const std::lock_guard lock(mutex_);
  finished_ = true;
}

std::string ProgressBar::line(double now) const {
  const auto done = static_cast<double>(done_.load(std::memory_order_relaxed));
  const auto total = static_cast<double>(total_);
  const double elapsed = std::max(now - start_, 1e-9);
  const double rate = done / elapsed;
  const std::string unit = unit_.name.empty() ? "" : fmt::format(" {}", unit_.name);
  // A bar that reaches the last column would wrap on some terminals.
  const size_t columns = sink_.columns > 0 ? sink_.columns - 1 : 0;
  if (total_ <= 0) {
    return std::string(cut(fmt::format("{}  {}{}  {}", label_, progress_count(done, unit_), unit,
                                       rate_text(rate, unit_)),
                           columns));
  }
  const double share = std::clamp(done / total, 0.0, 1.0);
  const double left = rate > 0 ? std::max(total - done, 0.0) / rate : 0;
  const std::string tail =
      fmt::format("{:3.0f}%  {}/{}{}  {}  {}", std::floor(share * 100), progress_count(done, unit_),
                  progress_count(total, unit_), unit, rate_text(rate, unit_),
                  rate > 0 ? fmt::format("{} left", progress_time(left)) : "");
  const size_t used = display_width(label_) + display_width(tail) + 5;  // "  [" and "] "
  const size_t room = columns > used ? columns - used : 0;
  std::string bar;
  if (room >= kNarrowestBar) {
    const size_t width = std::min(room, kWidestBar);
    const auto full = static_cast<size_t>(share * static_cast<double>(width));
    bar = fmt::format("[{}{}] ", std::string(full, '#'), std::string(width - full, '.'));
  }
  return std::string(cut(fmt::format("{}  {}{}", label_, bar, tail), columns));
}

}  // namespace octet
