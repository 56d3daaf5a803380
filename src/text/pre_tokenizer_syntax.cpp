// pcre2_pattern: from Oniguruma's Ruby syntax to PCRE2. Sources: doc/RE and doc/SYNTAX.md of
// Oniguruma 6.9, pcre2pattern(3) of PCRE2 10.42.
#include <array>
#include <optional>
#include <vector>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/error.h"
#include "text/pre_tokenizer_pattern.h"
#include "text/unicode_later.h"
#include "text/utf8.h"

namespace octet {
namespace {

// Members of a PCRE2 class, without the brackets.
// \s is the property White_Space; PCRE2's own \s also holds U+180E.
constexpr std::string_view kSpace =
    R"(\x{9}-\x{d}\x{20}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";
constexpr std::string_view kNotSpace =
    R"(\x{0}-\x{8}\x{e}-\x{1f}\x{21}-\x{84}\x{86}-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027})"
    R"(\x{202a}-\x{202e}\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{d7ff}\x{e000}-\x{10ffff})";
// \w of Oniguruma: Alphabetic, M, Nd, Pc and, as its table of Latin-1 has it, six numbers. That of
// PCRE2 10.42 lacks marks and connectors.
constexpr std::string_view kWord =
    R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{b2}\x{b3}\x{b9}\x{bc}-\x{be})";
constexpr std::string_view kHexDigit = "0-9A-Fa-f";

constexpr std::array<std::string_view, 38> kCategories = {
    "Any", "C",  "Cc", "Cf", "Cn", "Co", "Cs", "L",  "Ll", "Lm", "Lo", "Lt", "Lu",
    "M",   "Mc", "Me", "Mn", "N",  "Nd", "Nl", "No", "P",  "Pc", "Pd", "Pe", "Pf",
    "Pi",  "Po", "Ps", "S",  "Sc", "Sk", "Sm", "So", "Z",  "Zl", "Zp", "Zs"};

// The longest published pattern has about 700 bytes; nested repeats make the work quadratic.
constexpr size_t kLongestPattern = 16 * 1024;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_letter(char c) {
  return (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
}

std::string literal(uint32_t value) {
  if (value < 0x80 && (is_digit(static_cast<char>(value)) || is_letter(static_cast<char>(value)))) {
    return {static_cast<char>(value)};
  }
  return fmt::format("\\x{{{:x}}}", value);
}

std::string range(uint32_t first, uint32_t last) {
  return literal(first) + '-' + literal(last);
}

// Class members for the characters of a general category (L, Ll, ...) that PCRE2's tables may lack.
std::string later(std::string_view category) {
  std::string members;
  for (const LaterCharacters& added : kLaterCharacters) {
    if (added.category.starts_with(category)) members += range(added.first, added.last);
  }
  return members;
}

std::string later_han() {
  std::string members;
  for (const auto& added : kLaterHan) members += range(added[0], added[1]);
  return members;
}

const std::string& word_members() {
  static const std::string members =
      std::string(kWord) + later("L") + later("M") + later("Nd") + later("Pc");
  return members;
}

bool compiles(const std::string& pattern) {
  int error = 0;
  PCRE2_SIZE at = 0;
  pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                                   PCRE2_UTF | PCRE2_UCP, &error, &at, nullptr);
  pcre2_code_free(code);
  return code != nullptr;
}

// One item that may stand inside or outside a class: a character, or a set.
struct Item {
  std::optional<uint32_t> character;
  std::string members;      // of a set: what stands between the brackets of a class
  bool complement = false;  // the set is everything but `members`
  std::string others;       // of a complement: its members themselves, where they can be written
};

class Translator {
 public:
  explicit Translator(std::string_view pattern) : in_(pattern) {}

  std::string run() {
    while (at_ < in_.size()) step();
    if (!groups_.empty()) refuse("a group that is not closed", in_.size());
    return std::move(out_);
  }

 private:
  [[noreturn]] void refuse(std::string_view what, size_t where) const {
    throw_error(
        Code::BadInput,
        fmt::format("pattern \"{}\" uses {} at byte {}, which is not supported", in_, what, where),
        "use a tokenizer whose pattern is written with classes, properties, groups, look-around "
        "and repeats");
  }
  bool sees(std::string_view text) const { return in_.substr(at_).starts_with(text); }
  char peek(size_t ahead = 0) const { return at_ + ahead < in_.size() ? in_[at_ + ahead] : '\0'; }

  void begin_atom() {
    atom_ = out_.size();
    repeated_ = false;
  }

  void step() {
    switch (const char c = in_[at_]) {
      case '(':
        return open_group();
      case ')':
        return close_group();
      case '[':
        return char_class();
      case '\\':
        return escape_outside();
      case '*':
      case '+':
      case '?':
        return repeat(1);
      case '{':
        return brace();
      case '|':
        ++at_;
        out_ += c;
        atom_.reset();
        return;
      case '^':
      case '$':
      case '.':
        ++at_;
        begin_atom();
        out_ += c;
        return;
      default: {
        const CodePoint point = code_point_at(in_, at_);
        at_ += point.bytes;
        begin_atom();
        out_ += literal(point.value);
      }
    }
  }

  void open_group() {
    constexpr std::array<std::string_view, 8> kKinds = {
        "(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?i:", "(?-i:"};
    if (sees("(?i)") && at_ == 0) {  // further in, the two engines disagree about its reach
      at_ += 4;
      out_ += "(?i)";
      return;
    }
    if (sees("(*")) refuse("a verb or callout '(*'", at_);
    std::string_view kind;
    for (const std::string_view known : kKinds) {
      if (sees(known)) kind = known;
    }
    if (kind.empty() && sees("(?")) refuse(fmt::format("a group '{}'", in_.substr(at_, 4)), at_);
    groups_.push_back(out_.size());
    at_ += kind.empty() ? 1 : kind.size();
    out_ += kind.empty() ? "(?:" : kind;  // nothing refers back, so no group needs to capture
    atom_.reset();
  }

  void close_group() {
    if (groups_.empty()) refuse("a ')' that closes nothing", at_);
    ++at_;
    out_ += ')';
    atom_ = groups_.back();
    groups_.pop_back();
    repeated_ = false;
  }

  // A repeat of `length` bytes at at_. A suffix '?' (lazy) or '+' (possessive) belongs to it after
  // * + and ?; behind braces '+' is a second repeat, and a repeat of a repeat needs a group of its
  // own in PCRE2.
  void repeat(size_t length) {
    const std::string_view text = in_.substr(at_, length);
    repeat(text, text, length);
  }
  void repeat(std::string_view shown, std::string_view written, size_t length) {
    if (!atom_) refuse(fmt::format("a repeat '{}' of nothing", shown), at_);
    if (repeated_) {
      out_.insert(*atom_, "(?:");
      out_ += ')';
    }
    out_ += written;
    at_ += length;
    const bool braces = shown.front() == '{';
    const bool exact =
        braces && shown.find(',') == std::string_view::npos;  // '{n}?' is '(?:x{n})?' in Ruby
    if (peek() == '?' && !exact) {
      out_ += '?';
      ++at_;
    } else if (peek() == '+' && !braces) {
      out_ += '+';
      ++at_;
    }
    repeated_ = true;
  }

  void brace() {
    const size_t close = in_.find('}', at_);
    const std::string_view text =
        close == std::string_view::npos ? "" : in_.substr(at_, close - at_ + 1);
    const std::string_view inside = text.empty() ? "" : text.substr(1, text.size() - 2);
    size_t commas = 0, digits = 0;
    for (const char c : inside) {
      commas += c == ',';
      digits += is_digit(c);
    }
    if (digits == 0 || commas > 1 ||
        commas + digits != inside.size()) {  // not a repeat: a plain brace
      ++at_;
      begin_atom();
      out_ += literal('{');
      return;
    }
    const std::string written =
        inside.front() == ',' ? fmt::format("{{0{}}}", inside) : std::string(text);
    repeat(text, written, text.size());
  }

  uint32_t hex(size_t digits_at, size_t digits_end, size_t where) const {
    if (digits_end == digits_at || digits_end - digits_at > 6 || digits_end > in_.size())
      refuse("a broken hexadecimal escape", where);
    uint32_t value = 0;
    for (size_t i = digits_at; i < digits_end; ++i) {
      const char c = in_[i];
      if (!is_digit(c) && !((c | 0x20) >= 'a' && (c | 0x20) <= 'f'))
        refuse("a broken hexadecimal escape", where);
      value = value * 16 + static_cast<uint32_t>(is_digit(c) ? c - '0' : (c | 0x20) - 'a' + 10);
    }
    if (value > 0x10FFFF || (value >= 0xD800 && value < 0xE000))
      refuse("an escape that is no character", where);
    return value;
  }

  // \xHH, \x{H...}, \uHHHH, with at_ behind the letter.
  uint32_t hex_escape(char letter, size_t where) {
    if (letter == 'x' && peek() == '{') {
      const size_t close = in_.find('}', at_);
      if (close == std::string_view::npos) refuse("a broken hexadecimal escape", where);
      const uint32_t value = hex(at_ + 1, close, where);
      at_ = close + 1;
      return value;
    }
    const size_t digits = letter == 'x' ? 2 : 4;
    const uint32_t value = hex(at_, at_ + digits, where);
    if (letter == 'x' && value >= 0x80) refuse("a raw byte '\\x'", where);
    at_ += digits;
    return value;
  }

  // \p{Name}, \p{^Name}, \P{Name}, with at_ behind the letter.
  Item property(bool negated, size_t where) {
    const size_t close = in_.find('}', at_);
    if (peek() != '{' || close == std::string_view::npos)
      refuse("a property without braces", where);
    std::string_view name = in_.substr(at_ + 1, close - at_ - 1);
    at_ = close + 1;
    if (name.starts_with('^')) {
      negated = !negated;
      name.remove_prefix(1);
    }
    for (const char c : name) {
      if (!is_letter(c) && !is_digit(c) && c != '_')
        refuse(fmt::format("the property '{}'", name), where);
    }
    bool category = false;
    for (const std::string_view known : kCategories) category |= name == known;
    if (category) {
      const std::string members =
          fmt::format("\\p{{{}}}{}", name, name == "Any" ? "" : later(name));
      return {{}, members, negated, fmt::format("\\P{{{}}}", name)};
    }
    // A bare script name means script extensions to PCRE2, and the script itself to Oniguruma.
    for (const char* prefix : {"sc:", ""}) {
      const std::string member = fmt::format("\\p{{{}{}}}", prefix, name);
      if (!compiles(member)) continue;
      return {{},
              member + (name == "Han" ? later_han() : ""),
              negated,
              fmt::format("\\P{{{}{}}}", prefix, name)};
    }
    refuse(fmt::format("the property '{}'", name), where);
  }

  // An escape that means the same inside and outside a class; nullopt leaves at_ behind the letter.
  std::optional<Item> escape(size_t where) {
    if (at_ + 1 >= in_.size()) refuse("a backslash at the end", at_);
    ++at_;
    const char c = in_[at_];
    if (!is_letter(c) && !is_digit(c)) {
      const CodePoint point = code_point_at(in_, at_);
      at_ += point.bytes;
      return Item{point.value, {}};
    }
    ++at_;
    switch (c) {
      case 's':
        return Item{{}, std::string(kSpace)};
      case 'S':
        return Item{{}, std::string(kSpace), true, std::string(kNotSpace)};
      case 'w':
        return Item{{}, word_members()};
      case 'W':
        return Item{{}, word_members(), true};
      case 'h':
        return Item{{}, std::string(kHexDigit)};
      case 'H':
        return Item{{}, std::string(kHexDigit), true};
      case 'd':
        return Item{{}, "\\p{Nd}" + later("Nd")};
      case 'D':
        return Item{{}, "\\p{Nd}" + later("Nd"), true, "\\P{Nd}"};
      case 'p':
        return property(false, where);
      case 'P':
        return property(true, where);
      case 't':
        return Item{'\t', {}};
      case 'n':
        return Item{'\n', {}};
      case 'v':
        return Item{0x0B, {}};
      case 'f':
        return Item{0x0C, {}};
      case 'r':
        return Item{'\r', {}};
      case 'a':
        return Item{0x07, {}};
      case 'e':
        return Item{0x1B, {}};
      case 'x':
      case 'u':
        return Item{hex_escape(c, where), {}};
      default:
        return std::nullopt;
    }
  }

  void escape_outside() {
    const size_t where = at_;
    const std::optional<Item> item = escape(where);
    begin_atom();
    if (item) {
      out_ += item->character ? literal(*item->character)
                              : fmt::format("[{}{}]", item->complement ? "^" : "", item->members);
      return;
    }
    switch (const char c = in_[at_ - 1]) {
      case 'A':
      case 'z':
      case 'Z':
        out_ += '\\';
        out_ += c;
        return;
      case 'b':
        out_ += fmt::format("(?:(?<=[{0}])(?![{0}])|(?<![{0}])(?=[{0}]))", word_members());
        return;
      case 'B':
        out_ += fmt::format("(?:(?<=[{0}])(?=[{0}])|(?<![{0}])(?![{0}]))", word_members());
        return;
      default:
        refuse(fmt::format("the escape '\\{}'", c), where);
    }
  }

  Item class_item() {
    const size_t where = at_;
    if (peek() == '[') refuse("a class inside a class", where);
    if (sees("&&")) refuse("the intersection of classes '&&'", where);
    if (peek() != '\\') {
      const CodePoint point = code_point_at(in_, at_);
      at_ += point.bytes;
      return {point.value, {}};
    }
    std::optional<Item> item = escape(where);
    if (!item && in_[at_ - 1] == 'b') return {0x08, {}};
    if (!item) refuse(fmt::format("the escape '\\{}' in a class", in_[at_ - 1]), where);
    if (item->complement) {
      if (item->others.empty()) refuse("the complement of a set in a class", where);
      return {{}, item->others};
    }
    return std::move(*item);
  }

  void char_class() {
    const size_t where = at_++;
    begin_atom();
    out_ += '[';
    if (peek() == '^') {
      ++at_;
      out_ += '^';
    }
    if (peek() == ']') refuse("an empty class", where);
    while (peek() != ']') {
      if (at_ >= in_.size()) refuse("a class that is not closed", where);
      const Item item = class_item();
      out_ += item.character ? literal(*item.character) : item.members;
      if (!item.character || peek() != '-' || peek(1) == ']' || at_ + 1 >= in_.size()) continue;
      ++at_;
      const Item last = class_item();
      if (!last.character) refuse("a range that ends in a set", where);
      out_ += '-' + literal(*last.character);
    }
    ++at_;
    out_ += ']';
  }

  std::string_view in_;
  size_t at_ = 0;
  std::string out_;
  std::optional<size_t> atom_;  // where in out_ that begins which a repeat would repeat
  bool repeated_ = false;       // that atom carries a repeat already
  std::vector<size_t> groups_;  // where in out_ the open groups begin
};

}  // namespace

std::string pcre2_pattern(std::string_view pattern) {
  if (pattern.size() > kLongestPattern) {
    throw_error(Code::BadInput, fmt::format("a pattern of {} bytes is longer than {}",
                                            pattern.size(), kLongestPattern));
  }
  return Translator(pattern).run();
}

}  // namespace octet
