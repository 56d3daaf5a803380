#include "text/jinja_expression.h"

#include <algorithm>
#include <optional>

namespace octet::jinja {
namespace {

[[noreturn]] void nested_too_deep(int line) {
  fail(fmt::format("line {}: an expression nests deeper than {} levels", line, kMaxSyntaxDepth));
}

int depth_of(const ExpressionPtr& node) {
  return node ? node->depth : 0;
}

int depth_of(const ExpressionList& nodes) {
  int depth = 0;
  for (const auto& node : nodes) depth = std::max(depth, node->depth);
  return depth;
}

int depth_of(const CallSyntax& call) {
  int depth = std::max({depth_of(call.positional), depth_of(call.rest), depth_of(call.named_rest)});
  for (const auto& [name, node] : call.named) depth = std::max(depth, node->depth);
  return depth;
}

struct ChildDepth {
  int operator()(const LiteralNode&) const { return 0; }
  int operator()(const NameNode&) const { return 0; }
  int operator()(const SequenceNode& n) const { return depth_of(n.items); }
  int operator()(const DictNode& n) const {
    int depth = 0;
    for (const auto& [key, value] : n.entries) depth = std::max({depth, key->depth, value->depth});
    return depth;
  }
  int operator()(const AttributeNode& n) const { return depth_of(n.object); }
  int operator()(const SubscriptNode& n) const {
    return std::max(depth_of(n.object), depth_of(n.key));
  }
  int operator()(const SliceNode& n) const {
    return std::max({depth_of(n.object), depth_of(n.start), depth_of(n.stop), depth_of(n.step)});
  }
  int operator()(const UnaryNode& n) const { return depth_of(n.operand); }
  int operator()(const BinaryNode& n) const {
    return std::max(depth_of(n.left), depth_of(n.right));
  }
  int operator()(const ConcatNode& n) const { return depth_of(n.parts); }
  int operator()(const LogicalNode& n) const {
    return std::max(depth_of(n.left), depth_of(n.right));
  }
  int operator()(const CompareNode& n) const {
    int depth = depth_of(n.first);
    for (const auto& [op, node] : n.rest) depth = std::max(depth, node->depth);
    return depth;
  }
  int operator()(const ConditionalNode& n) const {
    return std::max({depth_of(n.test), depth_of(n.value), depth_of(n.otherwise)});
  }
  int operator()(const CallNode& n) const {
    return std::max(depth_of(n.callee), depth_of(n.arguments));
  }
  int operator()(const FilterNode& n) const {
    return std::max(depth_of(n.subject), depth_of(n.arguments));
  }
  int operator()(const TestNode& n) const {
    return std::max(depth_of(n.subject), depth_of(n.arguments));
  }
};

std::optional<CompareOp> compare_op(const Token& token) {
  if (token.kind != TokenKind::Operator) return std::nullopt;
  if (token.text == "==") return CompareOp::Equal;
  if (token.text == "!=") return CompareOp::NotEqual;
  if (token.text == "<") return CompareOp::Less;
  if (token.text == "<=") return CompareOp::LessEqual;
  if (token.text == ">") return CompareOp::Greater;
  if (token.text == ">=") return CompareOp::GreaterEqual;
  return std::nullopt;
}

std::optional<BinaryOp> product_op(const Token& token) {
  if (token.kind != TokenKind::Operator) return std::nullopt;
  if (token.text == "*") return BinaryOp::Multiply;
  if (token.text == "/") return BinaryOp::Divide;
  if (token.text == "//") return BinaryOp::FloorDivide;
  if (token.text == "%") return BinaryOp::Modulo;
  return std::nullopt;
}

}  // namespace

ExpressionParser::Nested::Nested(ExpressionParser& parser) : parser_(parser) {
  if (++parser_.nesting_ > kMaxSyntaxDepth) nested_too_deep(parser_.tokens_.current().line);
}

ExpressionPtr ExpressionParser::make(int line, Expression::Node node) {
  const int depth = 1 + std::visit(ChildDepth{}, node);
  if (depth > kMaxSyntaxDepth) nested_too_deep(line);
  return std::make_unique<Expression>(Expression{line, depth, std::move(node)});
}

ExpressionPtr ExpressionParser::expression_without_condition() {
  return disjunction();
}

ExpressionPtr ExpressionParser::expression() {
  const Nested nested(*this);
  int line = tokens_.current().line;
  const size_t unknown_before = unknown_.size();
  ExpressionPtr value = disjunction();
  while (tokens_.take_name("if")) {
    ExpressionPtr condition = disjunction();
    ExpressionPtr otherwise;
    if (tokens_.take_name("else")) otherwise = expression();
    value =
        make(line, ConditionalNode{std::move(condition), std::move(value), std::move(otherwise)});
    unknown_.resize(unknown_before);
    line = tokens_.current().line;
  }
  return value;
}

void ExpressionParser::refuse_unknown() {
  if (branches_ == 0 && !unknown_.empty()) fail(unknown_.front());
  unknown_.clear();
}

ExpressionPtr ExpressionParser::tuple(bool conditional) {
  const int line = tokens_.current().line;
  const auto at_end = [&] {
    const Token& token = tokens_.current();
    return token.kind == TokenKind::VariableEnd || token.kind == TokenKind::BlockEnd ||
           token.is_operator(")") || token.is_name("recursive");
  };
  ExpressionList items;
  bool is_tuple = false;
  while (!at_end()) {
    items.push_back(conditional ? expression() : expression_without_condition());
    if (!tokens_.take_operator(",")) break;
    is_tuple = true;
  }
  if (!is_tuple) {
    if (items.empty()) tokens_.unexpected("an expression");
    return std::move(items.front());
  }
  return make(line, SequenceNode{SequenceKind::Tuple, std::move(items)});
}

ExpressionPtr ExpressionParser::disjunction() {
  const int line = tokens_.current().line;
  ExpressionPtr left = conjunction();
  while (tokens_.take_name("or")) {
    left = make(line, LogicalNode{true, std::move(left), conjunction()});
  }
  return left;
}

ExpressionPtr ExpressionParser::conjunction() {
  const int line = tokens_.current().line;
  ExpressionPtr left = negation();
  while (tokens_.take_name("and")) {
    left = make(line, LogicalNode{false, std::move(left), negation()});
  }
  return left;
}

ExpressionPtr ExpressionParser::negation() {
  const int line = tokens_.current().line;
  if (!tokens_.take_name("not")) return comparison();
  const Nested nested(*this);
  return make(line, UnaryNode{UnaryOp::Not, negation()});
}

ExpressionPtr ExpressionParser::comparison() {
  const int line = tokens_.current().line;
  ExpressionPtr first = sum();
  std::vector<std::pair<CompareOp, ExpressionPtr>> rest;
  while (true) {
    std::optional<CompareOp> op = compare_op(tokens_.current());
    if (tokens_.current().is_name("in")) op = CompareOp::In;
    if (tokens_.current().is_name("not") && tokens_.ahead().is_name("in")) {
      tokens_.take();
      op = CompareOp::NotIn;
    }
    if (!op) break;
    tokens_.take();
    rest.emplace_back(*op, sum());
  }
  if (rest.empty()) return first;
  return make(line, CompareNode{std::move(first), std::move(rest)});
}

ExpressionPtr ExpressionParser::sum() {
  const int line = tokens_.current().line;
  ExpressionPtr left = concatenation();
  while (tokens_.current().is_operator("+") || tokens_.current().is_operator("-")) {
    const BinaryOp op = tokens_.take().text == "+" ? BinaryOp::Add : BinaryOp::Subtract;
    left = make(line, BinaryNode{op, std::move(left), concatenation()});
  }
  return left;
}

ExpressionPtr ExpressionParser::concatenation() {
  const int line = tokens_.current().line;
  ExpressionList parts;
  do {
    parts.push_back(product());
  } while (tokens_.take_operator("~"));
  if (parts.size() == 1) return std::move(parts.front());
  return make(line, ConcatNode{std::move(parts)});
}

ExpressionPtr ExpressionParser::product() {
  const int line = tokens_.current().line;
  ExpressionPtr left = power();
  while (const auto op = product_op(tokens_.current())) {
    tokens_.take();
    left = make(line, BinaryNode{*op, std::move(left), power()});
  }
  return left;
}

ExpressionPtr ExpressionParser::power() {
  const int line = tokens_.current().line;
  ExpressionPtr left = unary(true);
  while (tokens_.take_operator("**")) {
    left = make(line, BinaryNode{BinaryOp::Power, std::move(left), unary(true)});
  }
  return left;
}

ExpressionPtr ExpressionParser::unary(bool with_filters) {
  const int line = tokens_.current().line;
  ExpressionPtr node;
  if (tokens_.current().is_operator("-") || tokens_.current().is_operator("+")) {
    const Nested nested(*this);
    const UnaryOp op = tokens_.take().text == "-" ? UnaryOp::Minus : UnaryOp::Plus;
    node = make(line, UnaryNode{op, unary(false)});
  } else {
    node = primary();
  }
  node = postfix(std::move(node));
  return with_filters ? filters(std::move(node)) : std::move(node);
}

ExpressionPtr ExpressionParser::postfix(ExpressionPtr node) {
  while (true) {
    const Token& token = tokens_.current();
    if (token.is_operator(".") || token.is_operator("[")) {
      node = subscript(std::move(node));
    } else if (token.is_operator("(")) {
      const int line = token.line;
      node = make(line, CallNode{std::move(node), call_arguments()});
    } else {
      return node;
    }
  }
}

ExpressionPtr ExpressionParser::filters(ExpressionPtr node) {
  while (true) {
    const Token& token = tokens_.current();
    if (token.is_operator("|")) {
      node = filter(std::move(node));
    } else if (token.is_name("is")) {
      node = test(std::move(node));
    } else if (token.is_operator("(")) {
      const int line = token.line;
      node = make(line, CallNode{std::move(node), call_arguments()});
    } else {
      return node;
    }
  }
}

ExpressionPtr ExpressionParser::subscript(ExpressionPtr object) {
  const int line = tokens_.current().line;
  if (tokens_.take_operator(".")) {
    const Token& token = tokens_.take();
    if (token.kind == TokenKind::Name)
      return make(line, AttributeNode{std::move(object), token.text});
    if (token.kind != TokenKind::Integer) {
      fail(fmt::format("line {}: expected a name or a number after '.'", token.line));
    }
    ExpressionPtr key = make(line, LiteralNode{Value::integer(token.integer)});
    return make(line, SubscriptNode{std::move(object), std::move(key)});
  }
  tokens_.expect_operator("[");
  const auto at_bound = [&] {
    return !tokens_.current().is_operator(":") && !tokens_.current().is_operator("]");
  };
  ExpressionPtr start;
  if (at_bound()) start = expression();
  if (start && tokens_.take_operator("]")) {
    return make(line, SubscriptNode{std::move(object), std::move(start)});
  }
  if (tokens_.current().is_operator(",")) {
    tokens_.error("subscripts of several parts are not supported");
  }
  if (!tokens_.take_operator(":")) tokens_.unexpected("an index or a slice");
  SliceNode slice{std::move(object), std::move(start), nullptr, nullptr};
  if (at_bound()) slice.stop = expression();
  if (tokens_.take_operator(":") && at_bound()) slice.step = expression();
  tokens_.expect_operator("]");
  return make(line, std::move(slice));
}

std::string ExpressionParser::dotted_name() {
  std::string name = tokens_.expect_identifier();
  while (tokens_.take_operator(".")) name.append(1, '.').append(tokens_.expect_identifier());
  return name;
}

ExpressionPtr ExpressionParser::filter(ExpressionPtr subject) {
  tokens_.expect_operator("|");
  const int line = tokens_.current().line;
  std::string name = dotted_name();
  const Builtin* builtin = find_filter(name);
  if (builtin == nullptr) {
    unknown_.push_back(fmt::format("line {}: unknown filter '{}'", line, name));
  }
  CallSyntax arguments;
  if (tokens_.current().is_operator("(")) arguments = call_arguments();
  return make(line, FilterNode{std::move(subject), std::move(name), builtin, std::move(arguments)});
}

ExpressionPtr ExpressionParser::captured_filter(bool first_without_bar) {
  ExpressionPtr node;
  if (first_without_bar) {
    const int line = tokens_.current().line;
    std::string name = dotted_name();
    const Builtin* builtin = find_filter(name);
    if (builtin == nullptr) {
      unknown_.push_back(fmt::format("line {}: unknown filter '{}'", line, name));
    }
    CallSyntax arguments;
    if (tokens_.current().is_operator("(")) arguments = call_arguments();
    node = make(line, FilterNode{nullptr, std::move(name), builtin, std::move(arguments)});
  }
  while (tokens_.current().is_operator("|")) node = filter(std::move(node));
  return node;
}

ExpressionPtr ExpressionParser::test(ExpressionPtr subject) {
  const int line = tokens_.take().line;  // "is"
  const bool negated = tokens_.take_name("not");
  std::string name = dotted_name();
  const Builtin* builtin = find_test(name);
  if (builtin == nullptr) {
    unknown_.push_back(fmt::format("line {}: unknown test '{}'", line, name));
  }
  ExpressionPtr node =
      make(line, TestNode{std::move(subject), std::move(name), builtin, test_arguments()});
  if (!negated) return node;
  return make(line, UnaryNode{UnaryOp::Not, std::move(node)});
}

CallSyntax ExpressionParser::test_arguments() {
  const Token& token = tokens_.current();
  CallSyntax arguments;
  if (token.is_operator("(")) return call_arguments();
  const bool starts_value = token.kind == TokenKind::Name || token.kind == TokenKind::Text ||
                            token.kind == TokenKind::Integer || token.kind == TokenKind::Real ||
                            token.is_operator("[") || token.is_operator("{");
  if (!starts_value || token.is_name("else") || token.is_name("or") || token.is_name("and")) {
    return arguments;
  }
  if (token.is_name("is")) tokens_.error("tests cannot be chained with is");
  arguments.positional.push_back(postfix(primary()));
  return arguments;
}

CallSyntax ExpressionParser::call_arguments() {
  CallSyntax call;
  tokens_.expect_operator("(");
  bool first = true;
  while (!tokens_.current().is_operator(")")) {
    if (!first) {
      tokens_.expect_operator(",");
      if (tokens_.current().is_operator(")")) break;
    }
    first = false;
    if (tokens_.take_operator("*")) {
      if (call.rest || call.named_rest) tokens_.error("a call takes one *list, before the **dict");
      call.rest = expression();
    } else if (tokens_.take_operator("**")) {
      if (call.named_rest) tokens_.error("a call takes one **dict");
      call.named_rest = expression();
    } else if (tokens_.current().kind == TokenKind::Name && tokens_.ahead().is_operator("=")) {
      if (call.named_rest) tokens_.error("an argument by name comes before the **dict");
      std::string name = tokens_.take().text;
      tokens_.take();
      call.named.emplace_back(std::move(name), expression());
    } else {
      if (call.rest || call.named_rest || !call.named.empty()) {
        tokens_.error("an argument by position comes before those by name");
      }
      call.positional.push_back(expression());
    }
  }
  tokens_.expect_operator(")");
  return call;
}

}  // namespace octet::jinja
