#pragma once
// Python's view of strings: positions in code points, its white space, its changes of case. All
// text here is well-formed UTF-8.
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace octet::jinja {

// str.isspace of one code point; also \s of Python's `re`.
bool is_python_space(uint32_t c);

// str.isprintable of one code point.
bool is_printable(uint32_t c);

// str.isalpha, str.isalnum and str.isdigit of one code point; digits are the decimal ones and
// superscripts, by general category and a short table.
bool is_letter(uint32_t c);
bool is_digit(uint32_t c);
bool is_numeric_character(uint32_t c);
bool is_upper(uint32_t c);
bool is_lower(uint32_t c);

// Removes white space, or any code point of `characters` when it is not empty, from the sides
// asked.
std::string_view strip(std::string_view text, bool left, bool right,
                       std::string_view characters = {});

// str.upper and str.lower. One code point to one, but for the sharp s, which becomes SS.
std::string to_upper(std::string_view text);
std::string to_lower(std::string_view text);
// str.capitalize: the first code point in upper case, the rest in lower case.
std::string capitalize(std::string_view text);
// str.title: every run of letters as capitalize does.
std::string title(std::string_view text);
std::string swap_case(std::string_view text);

// str.isalpha, isalnum, isdigit, isdecimal, isnumeric, isspace, isascii, isupper, islower, istitle
// of a whole string.
bool is_letters(std::string_view text);
bool is_letters_or_digits(std::string_view text);
bool is_digits(std::string_view text);
bool is_decimal_digits(std::string_view text);
bool is_numeric_text(std::string_view text);
bool is_space_text(std::string_view text);
bool is_ascii_text(std::string_view text);
bool is_upper_text(std::string_view text);
bool is_lower_text(std::string_view text);
bool is_title_text(std::string_view text);

// Code points in `text`.
int64_t count_characters(std::string_view text);

// Byte offset of code point `index`, text.size() past the end.
size_t byte_offset(std::string_view text, size_t index);

// The byte offset of every code point, and text.size() at the end.
std::vector<size_t> character_offsets(std::string_view text);

// Calls `take` with every line of str.splitlines, with its end if `keep_ends`.
void for_each_line(std::string_view text, bool keep_ends,
                   const std::function<void(std::string_view)>& take);

// First position of `needle` at or after byte `from`; npos if none. Linear time.
size_t find_text(std::string_view text, std::string_view needle, size_t from = 0);

// Escapes & < > ' " as HTML does in markupsafe.
std::string escape_html(std::string_view text);

}  // namespace octet::jinja
