#pragma once
// The evaluator: runs the statements of a template over a set of variables, under limits.
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/jinja_ast.h"
#include "text/jinja_builtin.h"

namespace octet::jinja {

// Variables of one block. A loop's body, a macro and so on see the scopes around them and write
// only to their own.
struct Scope {
  std::shared_ptr<Scope> parent;
  std::vector<std::pair<std::string_view, Value>> variables;  // the names live in the syntax tree

  const Value* find(std::string_view name, Budget& budget) const;  // here or further out
  void set(std::string_view name, Value value);
};

// A macro and the variables it saw when it was defined. Owned by the machine.
struct MacroObject {
  const MacroStatement* node;
  std::shared_ptr<Scope> scope;
};

// One rendering. Not reusable.
class Machine {
 public:
  // `variables` (a dict) must outlive the machine, as must the statements it executes.
  Machine(const Limits& limits, Clock clock, const Dict& variables);
  ~Machine();

  // The text that `statements` write. Throws Error{BadInput} and RaisedByTemplate; line() says
  // where.
  std::string render(const StatementList& statements);
  // The line of the template that ran last.
  int line() const { return line_; }

 private:
  friend class LoopState;
  enum class Flow : uint8_t { Normal, Break, Continue };
  class Nested;
  struct Evaluator;
  struct Executor;

  Value evaluate(const Expression& expression);
  Value name(const NameNode& node);
  Value logical(const LogicalNode& node);
  Value comparison(const CompareNode& node);
  Value concatenation(const ConcatNode& node);
  Value conditional(const ConditionalNode& node);
  Value filter(const FilterNode& node);
  Value test(const TestNode& node);
  Value call(const CallNode& node, const Value* caller);
  Value call_value(const Value& callee, CallArguments arguments);
  Value call_macro(const MacroObject& macro, CallArguments arguments);
  void bind_parameters(const MacroObject& macro, CallArguments& arguments, Scope& scope);
  CallArguments arguments(const CallSyntax& syntax);
  // The value of a filter chain whose innermost subject is `captured`; null: `captured` itself.
  Value filtered(const Expression* chain, const Value& captured);

  Flow execute(const StatementList& statements);
  // As above, in a scope of its own.
  Flow execute_inner(const StatementList& statements);
  Flow for_loop(const ForStatement& node);
  Flow set_block(const SetBlockStatement& node);
  Flow filter_block(const FilterBlockStatement& node);
  Flow with(const WithStatement& node);
  void call_block(const CallBlockStatement& node);
  void assign(const Target& target, const Value& value);
  const MacroObject& define(const MacroStatement& node);
  void write(std::string_view text);

  Runtime runtime_;
  const Dict& variables_;
  std::shared_ptr<Scope> scope_;
  std::deque<MacroObject> macros_;  // a deque: values point into it
  std::string* out_ = nullptr;
  const Value* captured_ = nullptr;  // what the innermost filter of a captured chain works on
  size_t depth_ = 0;
  int line_ = 1;
};

}  // namespace octet::jinja
