#pragma once
// Literals as Jinja writes them: numbers with underscores, strings with Python's escapes.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace octet::jinja {

// Length of the float or integer literal that starts `text`; 0 if none does.
size_t real_length(std::string_view text);
size_t integer_length(std::string_view text);

// Value of a literal of that form. An integer beyond int64 gives nullopt.
double parse_real_literal(std::string_view text);
std::optional<int64_t> parse_integer_literal(std::string_view text);

// Python's int(text, base) and float(text): white space around, sign and underscores allowed;
// nullopt for anything else. Throws Error{BadInput} for an integer beyond int64.
std::optional<int64_t> parse_integer(std::string_view text, int64_t base);
std::optional<double> parse_real(std::string_view text);

// The string between the quotes of a literal. Throws Error{BadInput} for a truncated escape, one
// that is no character, and \N{...}.
std::string decode_escapes(std::string_view text);

}  // namespace octet::jinja
