#pragma once
// The syntax tree of a template. It is built once, never changes and may be rendered by many
// threads.
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "text/jinja_builtin.h"

namespace octet::jinja {

struct Expression;
using ExpressionPtr = std::unique_ptr<Expression>;
using ExpressionList = std::vector<ExpressionPtr>;

struct CallSyntax {
  ExpressionList positional;
  std::vector<std::pair<std::string, ExpressionPtr>> named;
  ExpressionPtr rest;        // *list, may be null
  ExpressionPtr named_rest;  // **dict, may be null
};

enum class UnaryOp : uint8_t { Plus, Minus, Not };
enum class BinaryOp : uint8_t { Add, Subtract, Multiply, Divide, FloorDivide, Modulo, Power };
enum class CompareOp : uint8_t {
  Equal,
  NotEqual,
  Less,
  LessEqual,
  Greater,
  GreaterEqual,
  In,
  NotIn
};

struct LiteralNode {
  Value value;
};
struct NameNode {
  std::string name;
};
struct SequenceNode {
  SequenceKind kind;  // List or Tuple
  ExpressionList items;
};
struct DictNode {
  std::vector<std::pair<ExpressionPtr, ExpressionPtr>> entries;
};
struct AttributeNode {
  ExpressionPtr object;
  std::string name;
};
struct SubscriptNode {
  ExpressionPtr object;
  ExpressionPtr key;
};
// object[start:stop:step]; any of the three may be null.
struct SliceNode {
  ExpressionPtr object;
  ExpressionPtr start;
  ExpressionPtr stop;
  ExpressionPtr step;
};
struct UnaryNode {
  UnaryOp op;
  ExpressionPtr operand;
};
struct BinaryNode {
  BinaryOp op;
  ExpressionPtr left;
  ExpressionPtr right;
};
// a ~ b ~ c
struct ConcatNode {
  ExpressionList parts;
};
// a and b, a or b
struct LogicalNode {
  bool is_or;
  ExpressionPtr left;
  ExpressionPtr right;
};
// a < b < c: every operand is evaluated once, until one comparison is false.
struct CompareNode {
  ExpressionPtr first;
  std::vector<std::pair<CompareOp, ExpressionPtr>> rest;
};
// value if test else otherwise; `otherwise` may be null.
struct ConditionalNode {
  ExpressionPtr test;
  ExpressionPtr value;
  ExpressionPtr otherwise;
};
struct CallNode {
  ExpressionPtr callee;
  CallSyntax arguments;
};
// subject | filter and subject is test. `builtin` is null for a name that does not exist: as in
// Jinja, that is an error only when the branch it stands in is reached.
struct FilterNode {
  ExpressionPtr subject;  // null in {% filter %} and {% set %}: the captured text
  std::string name;
  const Builtin* builtin;
  CallSyntax arguments;
};
struct TestNode {
  ExpressionPtr subject;
  std::string name;
  const Builtin* builtin;
  CallSyntax arguments;
};

struct Expression {
  using Node =
      std::variant<LiteralNode, NameNode, SequenceNode, DictNode, AttributeNode, SubscriptNode,
                   SliceNode, UnaryNode, BinaryNode, ConcatNode, LogicalNode, CompareNode,
                   ConditionalNode, CallNode, FilterNode, TestNode>;
  int line;
  int depth;  // levels of expressions below and including this one
  Node node;
};

// What an assignment writes to: a name, an attribute of a namespace, or several of those.
struct Target {
  int line = 0;
  std::string name;             // empty: a tuple
  std::string attribute;        // empty: a plain name
  std::vector<Target> targets;  // of a tuple
};

struct Statement;
using StatementList = std::vector<Statement>;

struct TextStatement {
  std::string text;
};
struct OutputStatement {
  ExpressionPtr value;
};
struct ForStatement {
  Target target;
  ExpressionPtr items;
  ExpressionPtr filter;  // may be null
  StatementList body;
  StatementList otherwise;
};
struct IfStatement {
  std::vector<std::pair<ExpressionPtr, StatementList>> branches;
  StatementList otherwise;
};
struct SetStatement {
  Target target;
  ExpressionPtr value;
};
struct SetBlockStatement {
  Target target;
  ExpressionPtr filter;  // of the captured text; may be null
  StatementList body;
};
// A macro, or the body of a {% call %} block, which is a macro named "caller".
struct MacroStatement {
  std::string name;
  std::vector<std::pair<std::string, ExpressionPtr>> parameters;  // with default, may be null
  StatementList body;
  bool uses_caller = false;
  bool uses_varargs = false;
  bool uses_kwargs = false;
};
struct CallBlockStatement {
  MacroStatement caller;
  ExpressionPtr call;  // a CallNode
};
struct FilterBlockStatement {
  ExpressionPtr filter;
  StatementList body;
};
struct WithStatement {
  std::vector<std::pair<Target, ExpressionPtr>> assignments;
  StatementList body;
};
// {% generation %}: marks what the assistant wrote; renders as its body.
struct GenerationStatement {
  StatementList body;
};
struct BreakStatement {};
struct ContinueStatement {};

struct Statement {
  using Node =
      std::variant<TextStatement, OutputStatement, ForStatement, IfStatement, SetStatement,
                   SetBlockStatement, MacroStatement, CallBlockStatement, FilterBlockStatement,
                   WithStatement, GenerationStatement, BreakStatement, ContinueStatement>;
  int line;
  Node node;
};

}  // namespace octet::jinja
