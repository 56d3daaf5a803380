#pragma once
// Edits of strings that filters and methods share, each under a budget.
#include <cstdint>
#include <string>
#include <string_view>

#include "text/jinja_value.h"

namespace octet::jinja {

// str.replace: the first `count` places, all when it is negative.
std::string replace_text(std::string_view text, std::string_view from, std::string_view to,
                         int64_t count, Budget& budget);

// Pads to `width` code points with `fill` (one code point); align is <, > or ^ as str.center places
// it.
std::string pad_text(std::string_view text, int64_t width, std::string_view fill, char align,
                     Budget& budget);

// Whether one code point is \w of Python's `re`.
bool is_word_character(std::string_view character);

// str.split and str.rsplit; without `separator` at runs of white space. At most `limit` cuts when
// it is not negative; `from_right`: the cuts are made from the end.
ValueList split_text(const Value& text, const std::string* separator, int64_t limit,
                     bool from_right, Budget& budget);

}  // namespace octet::jinja
