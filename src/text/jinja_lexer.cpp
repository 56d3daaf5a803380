#include "text/jinja_lexer.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "text/jinja_limits.h"
#include "text/jinja_literal.h"
#include "text/jinja_unicode.h"
#include "text/utf8.h"

namespace octet::jinja {
namespace {

// Longest first.
constexpr std::array<std::string_view, 24> kOperators = {
    "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~",
    "[",  "]",  "(",  ")",  "{",  "}",  ">", "<", "=", ".", ":", "|"};
constexpr std::string_view kSingleOperators = ",;";

// Line ends become \n and one at the end of the file goes.
std::string normalize(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      if (i + 1 < source.size() && source[i + 1] == '\n') continue;
      out += '\n';
    } else {
      out += source[i];
    }
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

class Lexer {
 public:
  explicit Lexer(std::string source) : source_(std::move(source)), text_(source_) {}

  std::vector<Token> run() {
    while (at_ < text_.size()) root();
    add(TokenKind::End, {});
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void error(std::string message) const {
    fail(fmt::format("line {}: {}", line_at(at_), std::move(message)));
  }

  int line_at(size_t position) const {
    const auto end = text_.begin() + static_cast<std::ptrdiff_t>(std::min(position, text_.size()));
    return 1 + static_cast<int>(std::count(text_.begin(), end, '\n'));
  }

  Token& add(TokenKind kind, std::string text) {
    // Tokens come in order, so their lines are counted onwards from the last one.
    line_ += static_cast<int>(std::count(text_.begin() + static_cast<std::ptrdiff_t>(counted_),
                                         text_.begin() + static_cast<std::ptrdiff_t>(at_), '\n'));
    counted_ = at_;
    tokens_.push_back(Token{kind, line_, std::move(text)});
    return tokens_.back();
  }

  bool starts(std::string_view what, size_t from) const {
    return text_.substr(std::min(from, text_.size()), what.size()) == what;
  }

  size_t skip_space(size_t from) const {
    return text_.size() - strip(text_.substr(std::min(from, text_.size())), true, false).size();
  }

  // A sign that controls white space, at `from`; 0 if there is none.
  char sign_at(size_t from) const {
    return from < text_.size() && (text_[from] == '-' || text_[from] == '+') ? text_[from] : '\0';
  }

  // The position after a tag's end at `from` ("%}" or "#}" with its sign), white space trimmed as
  // the sign says; nullopt if no end is there.
  std::optional<size_t> tag_end(std::string_view end, size_t from) const {
    if (starts(end, from)) {
      const size_t after = from + end.size();
      return starts("\n", after) ? after + 1 : after;
    }
    const char sign = sign_at(from);
    if (sign == '\0' || !starts(end, from + 1)) return std::nullopt;
    const size_t after = from + 1 + end.size();
    return sign == '-' ? skip_space(after) : after;
  }

  void moved_to(size_t next) {
    line_starting_ = next > at_ ? text_[next - 1] == '\n' : line_starting_;
    at_ = next;
  }

  // Emits the text from `start` to `end`, which a tag with `sign` follows.
  void data(size_t start, size_t end, char sign, bool is_variable) {
    std::string_view text = text_.substr(start, end - start);
    if (sign == '-') {
      text = strip(text, false, true);
    } else if (sign != '+' && !is_variable) {
      const size_t newline = text.rfind('\n');
      const size_t line_start = newline == std::string_view::npos ? 0 : newline + 1;
      if ((line_start > 0 || line_starting_) &&
          strip(text.substr(line_start), true, true).empty()) {
        text = text.substr(0, line_start);
      }
    }
    if (!text.empty()) add(TokenKind::Data, std::string(text));
  }

  void root() {
    const size_t start = at_;
    size_t tag = start;
    while ((tag = text_.find('{', tag)) != std::string_view::npos) {
      if (tag + 1 < text_.size() &&
          std::string_view("%{#").find(text_[tag + 1]) != std::string::npos)
        break;
      ++tag;
    }
    if (tag == std::string_view::npos) {
      add(TokenKind::Data, std::string(text_.substr(start)));
      at_ = text_.size();
      return;
    }
    const char kind = text_[tag + 1];
    const char sign = sign_at(tag + 2);
    data(start, tag, sign, kind == '{');
    const size_t inside = tag + (sign != '\0' ? 3 : 2);
    at_ = tag;
    line_starting_ = false;
    if (kind == '#') {
      comment(inside);
    } else if (kind == '{') {
      add(TokenKind::VariableBegin, "{{");
      at_ = inside;
      code("}}");
    } else if (!raw(inside)) {
      add(TokenKind::BlockBegin, "{%");
      at_ = inside;
      code("%}");
    }
  }

  void comment(size_t inside) {
    if (inside >= text_.size()) return moved_to(text_.size());  // nothing left to lose, as in Jinja
    const size_t end = text_.find("#}", inside);
    if (end == std::string_view::npos) error("Missing end of comment tag");
    const bool has_sign = end > inside && sign_at(end - 1) != '\0';
    moved_to(*tag_end("#}", has_sign ? end - 1 : end));
  }

  // {% raw %} ... {% endraw %}; false if the tag at hand is another one.
  bool raw(size_t inside) {
    size_t p = skip_space(inside);
    if (!starts("raw", p)) return false;
    p = skip_space(p + 3);
    if (starts("-%}", p)) {
      p = skip_space(p + 3);
    } else if (starts("%}", p)) {
      p += 2;
    } else {
      return false;
    }
    if (p >= text_.size()) {
      at_ = text_.size();
      return true;
    }
    for (size_t tag = text_.find("{%", p); tag != std::string_view::npos;
         tag = text_.find("{%", tag + 1)) {
      const char sign = sign_at(tag + 2);
      const size_t name = skip_space(tag + (sign != '\0' ? 3 : 2));
      if (!starts("endraw", name)) continue;
      const auto end = tag_end("%}", skip_space(name + 6));
      if (!end) continue;
      line_starting_ = text_[p - 1] == '\n';
      data(p, tag, sign, false);
      moved_to(*end);
      return true;
    }
    error("Missing end of raw directive");
  }

  // Tokens until `end` ("}}" or "%}"), which counts only outside of brackets.
  void code(std::string_view end) {
    brackets_.clear();
    while (true) {
      at_ = skip_space(at_);
      if (at_ >= text_.size()) return;  // the parser reports what is missing
      if (brackets_.empty()) {
        if (const auto after = code_end(end)) {
          add(end == "}}" ? TokenKind::VariableEnd : TokenKind::BlockEnd, std::string(end));
          moved_to(*after);
          return;
        }
      }
      if (!number() && !name() && !literal() && !operation()) {
        error(fmt::format("unexpected character '{}'",
                          text_.substr(at_, code_point_at(text_, at_).bytes)));
      }
    }
  }

  std::optional<size_t> code_end(std::string_view end) const {
    if (end == "%}") return tag_end(end, at_);
    if (starts("-}}", at_)) return skip_space(at_ + 3);
    if (starts("}}", at_)) return at_ + 2;
    return std::nullopt;
  }

  bool number() {
    const bool after_dot = at_ > 0 && text_[at_ - 1] == '.';
    const size_t real = after_dot ? 0 : real_length(text_.substr(at_));
    const size_t length = real > 0 ? real : integer_length(text_.substr(at_));
    if (length == 0) return false;
    const std::string_view spelled = text_.substr(at_, length);
    Token& token = add(real > 0 ? TokenKind::Real : TokenKind::Integer, std::string(spelled));
    if (real > 0) {
      token.real = parse_real_literal(spelled);
    } else if (const auto value = parse_integer_literal(spelled)) {
      token.integer = *value;
    } else {
      error(fmt::format("the integer {} does not fit 64 bits", spelled));
    }
    at_ += length;
    return true;
  }

  bool name() {
    size_t p = at_;
    while (p < text_.size()) {
      const CodePoint point = code_point_at(text_, p);
      if (point.value != '_' && !is_letter(point.value) && !is_numeric_character(point.value))
        break;
      p += point.bytes;
    }
    if (p == at_) return false;
    add(TokenKind::Name, std::string(text_.substr(at_, p - at_)));
    at_ = p;
    return true;
  }

  bool literal() {
    const char quote = text_[at_];
    if (quote != '\'' && quote != '"') return false;
    size_t p = at_ + 1;
    while (p < text_.size() && text_[p] != quote) p += text_[p] == '\\' ? 2 : 1;
    if (p >= text_.size()) error("a string is never closed");
    std::string decoded;
    try {
      decoded = decode_escapes(text_.substr(at_ + 1, p - at_ - 1));
    } catch (const Error& e) {
      error(e.message());
    }
    add(TokenKind::Text, std::move(decoded));
    at_ = p + 1;
    return true;
  }

  bool operation() {
    std::string_view op;
    for (const std::string_view candidate : kOperators) {
      if (op.empty() && starts(candidate, at_)) op = candidate;
    }
    if (op.empty() && kSingleOperators.find(text_[at_]) != std::string_view::npos) {
      op = text_.substr(at_, 1);
    }
    if (op.empty()) return false;
    if (op == "{" || op == "(" || op == "[") {
      brackets_ += op == "{" ? '}' : (op == "(" ? ')' : ']');
    } else if (op == "}" || op == ")" || op == "]") {
      if (brackets_.empty()) error(fmt::format("unexpected '{}'", op));
      if (brackets_.back() != op[0]) {
        error(fmt::format("unexpected '{}', expected '{}'", op, brackets_.back()));
      }
      brackets_.pop_back();
    }
    add(TokenKind::Operator, std::string(op));
    at_ += op.size();
    return true;
  }

  std::string source_;
  std::string_view text_;
  size_t at_ = 0;
  size_t counted_ = 0;  // `line_` counts the newlines before this position
  int line_ = 1;
  bool line_starting_ = true;  // only white space can lie between here and a line's start
  std::string brackets_;       // the closing brackets awaited
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokenize(std::string_view source) {
  if (const auto bad = find_invalid_utf8(source)) {
    fail(fmt::format("the template is not UTF-8: byte {} of {} starts no character", *bad,
                     source.size()));
  }
  return Lexer(normalize(source)).run();
}

}  // namespace octet::jinja
