// Numbers as people write them on a command line.
#include <charconv>
#include <cmath>
#include <limits>

#include "cli/flags.h"

namespace octet {
namespace {

// Suffix letters, each 1000 (lower case) or 1024 (upper case) times the one before.
constexpr std::string_view kDecimal = "kmgt";
constexpr std::string_view kBinary = "KMGT";

[[noreturn]] void refuse(std::string_view subject, std::string_view expected, std::string_view got,
                         std::string hint = {}) {
  throw_error(Code::BadInput, fmt::format("{} takes {}, got '{}'", subject, expected, got),
              std::move(hint));
}

// What a number too large or too small for int64_t should have been.
[[noreturn]] void refuse_range(std::string_view subject, std::string_view range,
                               std::string_view got) {
  using Limits = std::numeric_limits<int64_t>;
  const std::string words = range.empty()
                                ? fmt::format("from {} to {}", Limits::min(), Limits::max())
                                : std::string(range);
  refuse(subject, fmt::format("a whole number {}", words), got);
}

// std::from_chars takes no '+', people do; "+-1" stays wrong.
std::string_view without_plus(std::string_view text) {
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  return text;
}

template <typename T>
std::from_chars_result read(std::string_view text, T& value) {
  return std::from_chars(text.data(), text.data() + text.size(), value);
}

struct Suffix {
  double factor = 1;
  bool binary = false;
  size_t length = 0;  // characters at the end of the text
};

// The suffix of "8k", "8K", "8Ki", "8KiB"; length 0 when there is none.
Suffix suffix_of(std::string_view text) {
  Suffix suffix;
  if (text.size() > 3 && text.substr(text.size() - 2) == "iB")
    suffix.length = 2;
  else if (text.size() > 2 && text.back() == 'i')
    suffix.length = 1;
  if (text.size() <= suffix.length) return {};
  const char letter = text[text.size() - suffix.length - 1];
  const size_t decimal = kDecimal.find(letter);
  const size_t binary = kBinary.find(letter);
  if (decimal == std::string_view::npos && binary == std::string_view::npos) return {};
  suffix.binary = binary != std::string_view::npos || suffix.length > 0;  // "ki" is binary as well
  const size_t power = std::min(decimal, binary) + 1;
  suffix.factor = std::pow(suffix.binary ? 1024.0 : 1000.0, static_cast<double>(power));
  ++suffix.length;
  return suffix;
}

}  // namespace

int64_t parse_integer(std::string_view text, std::string_view subject, std::string_view range) {
  const std::string_view digits = without_plus(text);
  int64_t value = 0;
  const auto [end, error] = read(digits, value);
  if (error == std::errc::result_out_of_range) refuse_range(subject, range, text);
  if (error != std::errc() || end != digits.data() + digits.size()) {
    refuse(subject, "a whole number", text);
  }
  return value;
}

uint64_t parse_unsigned(std::string_view text, std::string_view subject) {
  const std::string_view digits = without_plus(text);
  uint64_t value = 0;
  const auto [end, error] = read(digits, value);
  if (error != std::errc() || end != digits.data() + digits.size()) {
    refuse(subject,
           fmt::format("a whole number from 0 to {}", std::numeric_limits<uint64_t>::max()), text);
  }
  return value;
}

double parse_number(std::string_view text, std::string_view subject) {
  const std::string_view digits = without_plus(text);
  double value = 0;
  const auto [end, error] = read(digits, value);
  if (error != std::errc() || end != digits.data() + digits.size() || !std::isfinite(value)) {
    refuse(subject, "a number", text);
  }
  return value;
}

int64_t parse_size(std::string_view text, std::string_view subject, std::string_view range) {
  const std::string_view expected = "a whole number such as 8192, 8k (8000) or 8K (8192)";
  const Suffix suffix = suffix_of(text);
  const std::string_view digits = without_plus(text.substr(0, text.size() - suffix.length));
  const bool plain =
      !digits.empty() && digits.find_first_not_of("0123456789.-") == std::string_view::npos;
  const bool fraction = digits.find('.') != std::string_view::npos;
  if (!plain || (fraction && suffix.length == 0)) refuse(subject, expected, text);
  if (!fraction) {
    int64_t value = 0;
    const auto [end, error] = read(digits, value);
    const bool whole = end == digits.data() + digits.size();
    int64_t product = 0;
    if (error == std::errc::result_out_of_range ||
        (error == std::errc() && whole &&
         __builtin_mul_overflow(value, static_cast<int64_t>(suffix.factor), &product))) {
      refuse_range(subject, range, text);
    }
    if (error != std::errc() || !whole) refuse(subject, expected, text);
    return product;
  }
  double value = 0;
  const auto [end, error] = read(digits, value);
  if (error != std::errc() || end != digits.data() + digits.size()) refuse(subject, expected, text);
  if (suffix.binary) {
    refuse(subject, "no fraction before a binary suffix", text,
           "k m g t count in thousands: 1.5k is 1500");
  }
  // 25.6 * 1000 is not exactly 25600 in binary; a whole result may be off by its last bits only.
  const double exact = value * suffix.factor;
  const double rounded = std::nearbyint(exact);
  if (std::abs(exact - rounded) > 1e-9 * std::max(1.0, std::abs(exact))) {
    refuse(subject, "a size that comes out whole", text);
  }
  if (std::abs(rounded) >= 9.2e18) refuse_range(subject, range, text);
  return static_cast<int64_t>(rounded);
}

}  // namespace octet
