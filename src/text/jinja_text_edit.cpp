#include "text/jinja_text_edit.h"

#include <algorithm>

#include "text/jinja_unicode.h"
#include "text/utf8.h"

namespace octet::jinja {
namespace {

constexpr int64_t kMaxWidth = int64_t{1} << 40;

// A split in the making.
class Pieces {
 public:
  Pieces(bool safe, Budget& budget) : safe_(safe), budget_(budget) {}

  void add(std::string_view piece) {
    budget_.step();
    budget_.allocate(kObjectBytes + sizeof(Value) + piece.size());
    list_.push_back(Value::text(std::string(piece), safe_));
  }
  bool reached(int64_t limit) const {
    return limit >= 0 && static_cast<int64_t>(list_.size()) >= limit;
  }
  ValueList take(bool reversed) {
    if (reversed) std::reverse(list_.begin(), list_.end());
    return std::move(list_);
  }

 private:
  bool safe_;
  Budget& budget_;
  ValueList list_;
};

// Last position of `needle` in `text`; the caller has charged the search.
size_t find_last(std::string_view text, std::string_view needle) {
  return text.rfind(needle);
}

void split_at(std::string_view text, std::string_view separator, int64_t limit, Pieces& pieces) {
  size_t start = 0;
  while (!pieces.reached(limit)) {
    const size_t at = find_text(text, separator, start);
    if (at == std::string_view::npos) break;
    pieces.add(text.substr(start, at - start));
    start = at + separator.size();
  }
  pieces.add(text.substr(start));
}

void split_at_from_right(std::string_view text, std::string_view separator, int64_t limit,
                         Pieces& pieces) {
  while (!pieces.reached(limit)) {
    const size_t at = find_last(text, separator);
    if (at == std::string_view::npos) break;
    pieces.add(text.substr(at + separator.size()));
    text = text.substr(0, at);
  }
  pieces.add(text);
}

size_t space_end(std::string_view text) {
  return text.size() - strip(text, true, false).size();
}

size_t word_end(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    const CodePoint point = code_point_at(text, at);
    if (is_python_space(point.value)) break;
    at += point.bytes;
  }
  return at;
}

size_t word_start(std::string_view text) {
  size_t at = text.size();
  while (at > 0) {
    const CodePoint point = code_point_before(text, at);
    if (is_python_space(point.value)) break;
    at -= point.bytes;
  }
  return at;
}

void split_words(std::string_view text, int64_t limit, Pieces& pieces) {
  text.remove_prefix(space_end(text));
  while (!text.empty()) {
    if (pieces.reached(limit)) {
      pieces.add(text);  // the rest keeps the white space at its end
      return;
    }
    const size_t end = word_end(text);
    pieces.add(text.substr(0, end));
    text.remove_prefix(end);
    text.remove_prefix(space_end(text));
  }
}

void split_words_from_right(std::string_view text, int64_t limit, Pieces& pieces) {
  text = strip(text, false, true);
  while (!text.empty()) {
    if (pieces.reached(limit)) {
      pieces.add(text);
      return;
    }
    const size_t start = word_start(text);
    pieces.add(text.substr(start));
    text = strip(text.substr(0, start), false, true);
  }
}

}  // namespace

std::string replace_text(std::string_view text, std::string_view from, std::string_view to,
                         int64_t count, Budget& budget) {
  TextBuilder out(budget);
  budget.scan(text.size());
  size_t start = 0;
  for (int64_t done = 0; count < 0 || done < count; ++done) {
    // An empty pattern stands before every character and at the end.
    const size_t at = find_text(
        text, from, from.empty() && done > 0 ? start + byte_offset(text.substr(start), 1) : start);
    if (at == std::string_view::npos) break;
    if (from.empty() && done > 0 && at == start) break;  // the end is done
    budget.step();
    out += text.substr(start, at - start);
    out += to;
    start = at + from.size();
  }
  out += text.substr(start);
  return out.take();
}

std::string pad_text(std::string_view text, int64_t width, std::string_view fill, char align,
                     Budget& budget) {
  budget.scan(text.size());
  const int64_t length = count_characters(text);
  const int64_t missing = std::min(width, kMaxWidth) - length;
  TextBuilder out(budget);
  if (missing <= 0) {
    out += text;
    return out.take();
  }
  int64_t before = 0;
  if (align == '>') before = missing;
  // str.center puts the odd character to the left when the width is odd.
  if (align == '^') before = missing / 2 + (missing & width & 1);
  out.repeat(fill, static_cast<uint64_t>(before));
  out += text;
  out.repeat(fill, static_cast<uint64_t>(missing - before));
  return out.take();
}

bool is_word_character(std::string_view character) {
  const uint32_t c = code_point_at(character, 0).value;
  return c == '_' || is_letter(c) || is_numeric_character(c);
}

ValueList split_text(const Value& text, const std::string* separator, int64_t limit,
                     bool from_right, Budget& budget) {
  const std::string_view bytes = text.bytes();
  budget.scan(bytes.size());
  Pieces pieces(text.is_safe(), budget);
  if (separator == nullptr) {
    from_right ? split_words_from_right(bytes, limit, pieces) : split_words(bytes, limit, pieces);
    return pieces.take(from_right);
  }
  if (separator->empty()) fail("empty separator");
  if (from_right) {
    // rfind compares the separator at every place.
    budget.step(bytes.size() / 256 * std::min<uint64_t>(separator->size(), bytes.size()));
    split_at_from_right(bytes, *separator, limit, pieces);
  } else {
    split_at(bytes, *separator, limit, pieces);
  }
  return pieces.take(from_right);
}

}  // namespace octet::jinja
