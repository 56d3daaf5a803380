#pragma once
// Parser of expressions: tokens to Expression nodes, with the precedence of Jinja (concatenation by
// ~ binds tighter than + and -, filters bind tighter than any operator).
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "text/jinja_ast.h"
#include "text/jinja_lexer.h"

namespace octet::jinja {

// How deep expressions may nest in the source, and how long a chain of operators may be.
inline constexpr int kMaxSyntaxDepth = 150;

// The tokens of a template and the place reached in them.
class TokenStream {
 public:
  explicit TokenStream(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  const Token& current() const { return tokens_[at_]; }
  const Token& ahead() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  const Token& take();  // the current token; moves on
  bool take_operator(std::string_view op);
  bool take_name(std::string_view name);
  void expect_operator(std::string_view op);
  void expect_name(std::string_view name);
  std::string expect_identifier();

  // Throws Error{BadInput} with the line of the current token.
  [[noreturn]] void error(const std::string& message, std::string hint = {}) const;
  [[noreturn]] void unexpected(std::string_view expected) const;

 private:
  std::vector<Token> tokens_;
  size_t at_ = 0;
};

// A macro's body in which names are watched: `caller`, `varargs` and `kwargs` make it take them.
struct NameWatch {
  bool caller = false;
  bool varargs = false;
  bool kwargs = false;
};

class ExpressionParser {
 public:
  explicit ExpressionParser(TokenStream& tokens) : tokens_(tokens) {}

  ExpressionPtr expression();
  // An expression without a conditional at its top, as `for x in ...` and `if ...` take it.
  ExpressionPtr expression_without_condition();
  // One expression, or several with commas between: a tuple. `conditional`: as expression().
  ExpressionPtr tuple(bool conditional = true);
  // The filters after {% set x %} (each with its |, may be none: null) or {% filter %} (the first
  // without).
  ExpressionPtr captured_filter(bool first_without_bar);
  Target target(bool with_attributes);
  // A name that can be assigned to: none of the words for constants.
  std::string assignable_name();

  // Inside, unknown filters and tests are errors only when they are reached.
  void enter_branch() { ++branches_; }
  void leave_branch() { --branches_; }
  // Throws Error{BadInput} for the first unknown filter or test met since the last call, unless it
  // stands in a branch or in a conditional expression.
  void refuse_unknown();
  std::vector<NameWatch>& watches() { return watches_; }

 private:
  // Counts the recursion of the parser itself; throws when it goes too deep.
  class Nested {
   public:
    explicit Nested(ExpressionParser& parser);
    ~Nested() { --parser_.nesting_; }
    Nested(const Nested&) = delete;
    Nested& operator=(const Nested&) = delete;

   private:
    ExpressionParser& parser_;
  };

  ExpressionPtr make(int line, Expression::Node node);
  ExpressionPtr disjunction();
  ExpressionPtr conjunction();
  ExpressionPtr negation();
  ExpressionPtr comparison();
  ExpressionPtr sum();
  ExpressionPtr concatenation();
  ExpressionPtr product();
  ExpressionPtr power();
  ExpressionPtr unary(bool with_filters);
  ExpressionPtr primary();
  ExpressionPtr name();
  ExpressionPtr text_literal();
  ExpressionPtr list();
  ExpressionPtr dict();
  ExpressionPtr parenthesized();
  ExpressionPtr postfix(ExpressionPtr node);
  ExpressionPtr filters(ExpressionPtr node);
  ExpressionPtr subscript(ExpressionPtr object);
  ExpressionPtr filter(ExpressionPtr subject);
  ExpressionPtr test(ExpressionPtr subject);
  CallSyntax test_arguments();
  CallSyntax call_arguments();
  std::string dotted_name();
  Target single_target(bool with_attributes);

  TokenStream& tokens_;
  int nesting_ = 0;
  int branches_ = 0;
  std::vector<std::string> unknown_;  // messages about filters and tests that do not exist
  std::vector<NameWatch> watches_;
};

}  // namespace octet::jinja
