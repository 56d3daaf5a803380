#include "text/jinja_strftime.h"

#include <array>

namespace octet::jinja {
namespace {

constexpr std::array<std::string_view, 7> kDays = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                                   "Thursday", "Friday", "Saturday"};
constexpr std::array<std::string_view, 12> kMonths = {
    "January", "February", "March",     "April",   "May",      "June",
    "July",    "August",   "September", "October", "November", "December"};

// A field of the clock that is out of range names the place instead of reading past a table.
template <size_t N>
std::string_view name_of(const std::array<std::string_view, N>& names, int index) {
  return index >= 0 && index < static_cast<int>(N) ? names[static_cast<size_t>(index)] : "?";
}

// ISO 8601 week and the year it belongs to.
struct IsoWeek {
  int year;
  int week;
};

int weeks_in(int year) {
  const auto day_of_31_december = [](int y) { return (y + y / 4 - y / 100 + y / 400) % 7; };
  return day_of_31_december(year) == 4 || day_of_31_december(year - 1) == 3 ? 53 : 52;
}

IsoWeek iso_week(const std::tm& time) {
  const int year = time.tm_year + 1900;
  const int weekday = time.tm_wday == 0 ? 7 : time.tm_wday;
  const int week = (time.tm_yday + 1 - weekday + 10) / 7;
  if (week < 1) return {year - 1, weeks_in(year - 1)};
  if (week > weeks_in(year)) return {year + 1, 1};
  return {year, week};
}

int hour_of_12(const std::tm& time) {
  return time.tm_hour % 12 == 0 ? 12 : time.tm_hour % 12;
}

std::string offset_from_utc(const std::tm& time) {
  const long minutes = time.tm_gmtoff / 60;
  return fmt::format("{}{:02}{:02}", minutes < 0 ? '-' : '+', std::abs(minutes) / 60,
                     std::abs(minutes) % 60);
}

std::string padded(int value, int width, bool bare, char fill = '0') {
  if (bare) return fmt::format("{}", value);
  return fill == '0' ? fmt::format("{:0{}}", value, width) : fmt::format("{:{}}", value, width);
}

std::string directive(char c, bool bare, const std::tm& time) {
  switch (c) {
    case 'a':
      return std::string(name_of(kDays, time.tm_wday).substr(0, 3));
    case 'A':
      return std::string(name_of(kDays, time.tm_wday));
    case 'b':
    case 'h':
      return std::string(name_of(kMonths, time.tm_mon).substr(0, 3));
    case 'B':
      return std::string(name_of(kMonths, time.tm_mon));
    case 'C':
      return padded((time.tm_year + 1900) / 100, 2, bare);
    case 'd':
      return padded(time.tm_mday, 2, bare);
    case 'e':
      return padded(time.tm_mday, 2, bare, ' ');
    case 'G':
      return padded(iso_week(time).year, 4, bare);
    case 'H':
      return padded(time.tm_hour, 2, bare);
    case 'I':
      return padded(hour_of_12(time), 2, bare);
    case 'j':
      return padded(time.tm_yday + 1, 3, bare);
    case 'm':
      return padded(time.tm_mon + 1, 2, bare);
    case 'M':
      return padded(time.tm_min, 2, bare);
    case 'p':
      return time.tm_hour < 12 ? "AM" : "PM";
    case 'S':
      return padded(time.tm_sec, 2, bare);
    case 'u':
      return padded(time.tm_wday == 0 ? 7 : time.tm_wday, 1, true);
    case 'U':
      return padded((time.tm_yday + 7 - time.tm_wday) / 7, 2, bare);
    case 'V':
      return padded(iso_week(time).week, 2, bare);
    case 'w':
      return padded(time.tm_wday, 1, true);
    case 'W':
      return padded((time.tm_yday + 7 - (time.tm_wday + 6) % 7) / 7, 2, bare);
    case 'y':
      return padded((time.tm_year + 1900) % 100, 2, bare);
    case 'Y':
      return padded(time.tm_year + 1900, 4, bare || time.tm_year + 1900 > 999);
    case 'z':
      return offset_from_utc(time);
    case 'n':
      return "\n";
    case 't':
      return "\t";
    case '%':
      return "%";
    default:
      return {};
  }
}

// Directives that stand for several.
std::string_view expansion(char c) {
  switch (c) {
    case 'c':
      return "%a %b %e %H:%M:%S %Y";
    case 'D':
    case 'x':
      return "%m/%d/%y";
    case 'F':
      return "%Y-%m-%d";
    case 'R':
      return "%H:%M";
    case 'r':
      return "%I:%M:%S %p";
    case 'T':
    case 'X':
      return "%H:%M:%S";
    default:
      return {};
  }
}

}  // namespace

void append_time(TextBuilder& out, std::string_view format, const std::tm& time) {
  for (size_t at = 0; at < format.size(); ++at) {
    if (format[at] != '%') {
      out += format[at];
      continue;
    }
    const size_t start = at++;
    const bool bare = at < format.size() && format[at] == '-';
    if (bare) ++at;
    const char c = at < format.size() ? format[at] : '\0';
    out.budget().step();
    if (const std::string_view several = expansion(c); !several.empty()) {
      append_time(out, several, time);
      continue;
    }
    const std::string text = directive(c, bare, time);
    if (text.empty()) {
      fail(fmt::format("strftime_now: the directive '{}' is not supported",
                       format.substr(start, at + 1 - start)));
    }
    out += text;
  }
}

}  // namespace octet::jinja
