// The smallest expressions (names, literals, brackets), assignment targets, and the token stream.
#include "text/jinja_expression.h"

namespace octet::jinja {
namespace {

std::string describe(const Token& token) {
  switch (token.kind) {
    case TokenKind::Data:
      return "text";
    case TokenKind::End:
      return "the end of the template";
    case TokenKind::Text:
      return fmt::format("the string '{}'", token.text);
    default:
      return fmt::format("'{}'", token.text);
  }
}

}  // namespace

const Token& TokenStream::take() {
  const Token& token = tokens_[at_];
  if (at_ + 1 < tokens_.size()) ++at_;
  return token;
}

bool TokenStream::take_operator(std::string_view op) {
  if (!current().is_operator(op)) return false;
  take();
  return true;
}

bool TokenStream::take_name(std::string_view name) {
  if (!current().is_name(name)) return false;
  take();
  return true;
}

void TokenStream::expect_operator(std::string_view op) {
  if (!take_operator(op)) unexpected(fmt::format("'{}'", op));
}

void TokenStream::expect_name(std::string_view name) {
  if (!take_name(name)) unexpected(fmt::format("'{}'", name));
}

std::string TokenStream::expect_identifier() {
  if (current().kind != TokenKind::Name) unexpected("a name");
  return take().text;
}

void TokenStream::error(const std::string& message, std::string hint) const {
  fail(fmt::format("line {}: {}", current().line, message), std::move(hint));
}

void TokenStream::unexpected(std::string_view expected) const {
  error(fmt::format("expected {}, got {}", expected, describe(current())));
}

ExpressionPtr ExpressionParser::primary() {
  const Token& token = tokens_.current();
  const int line = token.line;
  switch (token.kind) {
    case TokenKind::Name:
      return name();
    case TokenKind::Text:
      return text_literal();
    case TokenKind::Integer:
      return make(line, LiteralNode{Value::integer(tokens_.take().integer)});
    case TokenKind::Real:
      return make(line, LiteralNode{Value::real(tokens_.take().real)});
    default:
      break;
  }
  if (token.is_operator("(")) return parenthesized();
  if (token.is_operator("[")) return list();
  if (token.is_operator("{")) return dict();
  tokens_.unexpected("a value");
}

ExpressionPtr ExpressionParser::name() {
  const Token& token = tokens_.take();
  const std::string& text = token.text;
  if (text == "true" || text == "True") return make(token.line, LiteralNode{Value::boolean(true)});
  if (text == "false" || text == "False") {
    return make(token.line, LiteralNode{Value::boolean(false)});
  }
  if (text == "none" || text == "None") return make(token.line, LiteralNode{Value::none()});
  for (NameWatch& watch : watches_) {
    watch.caller |= text == "caller";
    watch.varargs |= text == "varargs";
    watch.kwargs |= text == "kwargs";
  }
  return make(token.line, NameNode{text});
}

ExpressionPtr ExpressionParser::text_literal() {
  const int line = tokens_.current().line;
  std::string text;  // adjacent literals are one
  while (tokens_.current().kind == TokenKind::Text) text += tokens_.take().text;
  return make(line, LiteralNode{Value::text(std::move(text))});
}

ExpressionPtr ExpressionParser::parenthesized() {
  const int line = tokens_.current().line;
  tokens_.expect_operator("(");
  if (tokens_.take_operator(")")) return make(line, SequenceNode{SequenceKind::Tuple, {}});
  ExpressionPtr node = tuple();
  tokens_.expect_operator(")");
  return node;
}

ExpressionPtr ExpressionParser::list() {
  const int line = tokens_.current().line;
  tokens_.expect_operator("[");
  ExpressionList items;
  while (!tokens_.current().is_operator("]")) {
    items.push_back(expression());
    if (!tokens_.take_operator(",")) break;
  }
  tokens_.expect_operator("]");
  return make(line, SequenceNode{SequenceKind::List, std::move(items)});
}

ExpressionPtr ExpressionParser::dict() {
  const int line = tokens_.current().line;
  tokens_.expect_operator("{");
  DictNode node;
  while (!tokens_.current().is_operator("}")) {
    ExpressionPtr key = expression();
    tokens_.expect_operator(":");
    node.entries.emplace_back(std::move(key), expression());
    if (!tokens_.take_operator(",")) break;
  }
  tokens_.expect_operator("}");
  return make(line, std::move(node));
}

std::string ExpressionParser::assignable_name() {
  std::string name = tokens_.expect_identifier();
  for (const std::string_view word : {"true", "false", "none", "True", "False", "None"}) {
    if (name == word) tokens_.error(fmt::format("cannot assign to {}", word));
  }
  return name;
}

Target ExpressionParser::single_target(bool with_attributes) {
  Target target;
  target.line = tokens_.current().line;
  if (tokens_.take_operator("(")) {
    const Nested nested(*this);
    target = this->target(with_attributes);
    tokens_.expect_operator(")");
    return target;
  }
  target.name = assignable_name();
  if (with_attributes && tokens_.take_operator(".")) target.attribute = tokens_.expect_identifier();
  return target;
}

Target ExpressionParser::target(bool with_attributes) {
  Target first = single_target(with_attributes);
  if (!tokens_.current().is_operator(",")) return first;
  Target tuple;
  tuple.line = first.line;
  tuple.targets.push_back(std::move(first));
  while (tokens_.take_operator(",")) {
    const Token& token = tokens_.current();
    const bool more = token.kind == TokenKind::Name && !token.is_name("in");
    if (!more && !token.is_operator("(")) break;
    tuple.targets.push_back(single_target(with_attributes));
  }
  return tuple;
}

}  // namespace octet::jinja
