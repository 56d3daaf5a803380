#pragma once
// Template source to tokens, with white space control as transformers configures it: trim_blocks
// and lstrip_blocks on, one newline at the end dropped.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace octet::jinja {

enum class TokenKind : uint8_t {
  Data,           // text outside of tags
  VariableBegin,  // {{
  VariableEnd,    // }}
  BlockBegin,     // {%
  BlockEnd,       // %}
  Name,
  Text,  // a string literal, escapes decoded
  Integer,
  Real,
  Operator,
  End,
};

struct Token {
  TokenKind kind;
  int line;
  std::string text;  // data, name, decoded literal, or the operator
  int64_t integer = 0;
  double real = 0;

  bool is_operator(std::string_view op) const { return kind == TokenKind::Operator && text == op; }
  bool is_name(std::string_view name) const { return kind == TokenKind::Name && text == name; }
};

// All tokens of `source`, ended by End. Throws Error{BadInput} with "line N: " for source that is
// not UTF-8, open comments and strings, unbalanced brackets, unknown characters and escapes.
std::vector<Token> tokenize(std::string_view source);

}  // namespace octet::jinja
