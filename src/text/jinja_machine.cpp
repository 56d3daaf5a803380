// Evaluation of expressions and calls.
#include "text/jinja_machine.h"

#include "text/jinja_operator.h"
#include "text/jinja_print.h"

namespace octet::jinja {

const Value* Scope::find(std::string_view name, Budget& budget) const {
  for (const Scope* scope = this; scope != nullptr; scope = scope->parent.get()) {
    budget.step(scope->variables.size() / 16);
    for (const auto& [key, value] : scope->variables) {
      if (key == name) return &value;
    }
  }
  return nullptr;
}

void Scope::set(std::string_view name, Value value) {
  for (auto& [key, old] : variables) {
    if (key != name) continue;
    old = std::move(value);
    return;
  }
  variables.emplace_back(name, std::move(value));
}

Machine::Machine(const Limits& limits, Clock clock, const Dict& variables)
    : runtime_{Budget(limits), std::move(clock), {}},
      variables_(variables),
      scope_(std::make_shared<Scope>()) {}

Machine::~Machine() {
  // Macros hold the scopes they stand in; those only point at macros.
  for (MacroObject& macro : macros_) macro.scope.reset();
}

// Counts how deep the evaluation is; throws when it goes too deep.
class Machine::Nested {
 public:
  explicit Nested(Machine& machine) : machine_(machine) {
    const size_t limit = machine.runtime_.budget.limits().depth;
    if (++machine.depth_ > limit) {
      fail(fmt::format("the template nests deeper than {} levels", limit),
           "look for a macro that calls itself without end");
    }
  }
  ~Nested() { --machine_.depth_; }
  Nested(const Nested&) = delete;
  Nested& operator=(const Nested&) = delete;

 private:
  Machine& machine_;
};

struct Machine::Evaluator {
  Machine& m;

  Value operator()(const LiteralNode& node) const { return node.value; }
  Value operator()(const NameNode& node) const { return m.name(node); }
  Value operator()(const SequenceNode& node) const {
    ValueList items;
    items.reserve(node.items.size());
    m.runtime_.budget.allocate(kObjectBytes + node.items.size() * sizeof(Value));
    for (const auto& item : node.items) items.push_back(m.evaluate(*item));
    return Value::sequence(node.kind, std::move(items));
  }
  Value operator()(const DictNode& node) const {
    DictBuilder dict(m.runtime_.budget);
    for (const auto& [key, value] : node.entries) {
      const Value name = m.evaluate(*key);
      dict.set(name, m.evaluate(*value));
    }
    return dict.take();
  }
  Value operator()(const AttributeNode& node) const {
    return attribute_of(m.evaluate(*node.object), node.name, m.runtime_.budget);
  }
  Value operator()(const SubscriptNode& node) const {
    const Value object = m.evaluate(*node.object);
    return item_of(object, m.evaluate(*node.key), m.runtime_.budget);
  }
  Value operator()(const SliceNode& node) const {
    const Value object = m.evaluate(*node.object);
    const auto bound = [&](const ExpressionPtr& e) { return e ? m.evaluate(*e) : Value::none(); };
    SliceBounds bounds;
    bounds.start = bound(node.start);
    bounds.stop = bound(node.stop);
    bounds.step = bound(node.step);
    return slice_of(object, bounds, m.runtime_.budget);
  }
  Value operator()(const UnaryNode& node) const {
    return apply(node.op, m.evaluate(*node.operand));
  }
  Value operator()(const BinaryNode& node) const {
    const Value left = m.evaluate(*node.left);
    return apply(node.op, left, m.evaluate(*node.right), m.runtime_.budget);
  }
  Value operator()(const ConcatNode& node) const { return m.concatenation(node); }
  Value operator()(const LogicalNode& node) const { return m.logical(node); }
  Value operator()(const CompareNode& node) const { return m.comparison(node); }
  Value operator()(const ConditionalNode& node) const { return m.conditional(node); }
  Value operator()(const CallNode& node) const { return m.call(node, nullptr); }
  Value operator()(const FilterNode& node) const { return m.filter(node); }
  Value operator()(const TestNode& node) const { return m.test(node); }
};

Value Machine::evaluate(const Expression& expression) {
  const Nested nested(*this);
  runtime_.budget.step();
  line_ = expression.line;
  return std::visit(Evaluator{*this}, expression.node);
}

Value Machine::name(const NameNode& node) {
  if (const Value* value = scope_->find(node.name, runtime_.budget)) return *value;
  if (const Value* value = variables_.find(node.name)) return *value;
  if (const Builtin* function = find_builtin(global_functions(), node.name)) {
    return Value(Value::Data(function));
  }
  return Value::undefined(fmt::format("'{}' is undefined", node.name));
}

Value Machine::logical(const LogicalNode& node) {
  Value left = evaluate(*node.left);
  if (left.truthy() == node.is_or) return left;
  return evaluate(*node.right);
}

Value Machine::comparison(const CompareNode& node) {
  Value left = evaluate(*node.first);
  for (const auto& [op, operand] : node.rest) {
    Value right = evaluate(*operand);
    if (!apply(op, left, right, runtime_.budget)) return Value::boolean(false);
    left = std::move(right);
  }
  return Value::boolean(true);
}

Value Machine::concatenation(const ConcatNode& node) {
  TextBuilder out(runtime_.budget);
  for (const auto& part : node.parts) append_text(out, evaluate(*part));
  return Value::text(out.take());
}

Value Machine::conditional(const ConditionalNode& node) {
  if (evaluate(*node.test).truthy()) return evaluate(*node.value);
  if (node.otherwise) return evaluate(*node.otherwise);
  return Value::undefined(
      fmt::format("the inline if-expression on line {} evaluated to false and no else section was "
                  "defined.",
                  node.test->line));
}

CallArguments Machine::arguments(const CallSyntax& syntax) {
  CallArguments call;
  Budget& budget = runtime_.budget;
  for (const auto& item : syntax.positional) call.positional.push_back(evaluate(*item));
  for (const auto& [name, item] : syntax.named) {
    budget.step(call.named.size());
    if (call.find(name) != nullptr) fail(fmt::format("the argument '{}' is given twice", name));
    call.named.emplace_back(name, evaluate(*item));
  }
  if (syntax.rest) {
    for (Value& item : collect(evaluate(*syntax.rest), budget)) {
      call.positional.push_back(std::move(item));
    }
  }
  if (!syntax.named_rest) return call;
  const Value rest = evaluate(*syntax.named_rest);
  if (!rest.is_dict()) fail(fmt::format("** needs a dict, got a {}", rest.type_name()));
  for (const auto& [key, value] : rest.dict().entries) {
    if (!key.is_text()) fail("the names of arguments must be strings");
    if (call.find(key.bytes()) != nullptr) {
      fail(fmt::format("the argument '{}' is given twice", key.bytes()));
    }
    budget.step(call.named.size() + 1);
    budget.allocate(sizeof(Value) + key.bytes().size());
    call.named.emplace_back(key.bytes(), value);
  }
  return call;
}

Value Machine::filter(const FilterNode& node) {
  const Value subject = node.subject ? evaluate(*node.subject) : *captured_;
  if (node.builtin == nullptr) fail(fmt::format("unknown filter '{}'", node.name));
  CallArguments call = arguments(node.arguments);
  return run_builtin(runtime_, *node.builtin, subject, std::move(call));
}

Value Machine::filtered(const Expression* chain, const Value& captured) {
  if (chain == nullptr) return captured;
  const Value* before = std::exchange(captured_, &captured);
  Value result = evaluate(*chain);
  captured_ = before;
  return result;
}

Value Machine::test(const TestNode& node) {
  const Value subject = evaluate(*node.subject);
  if (node.builtin == nullptr) fail(fmt::format("unknown test '{}'", node.name));
  CallArguments call = arguments(node.arguments);
  return run_builtin(runtime_, *node.builtin, subject, std::move(call));
}

Value Machine::call(const CallNode& node, const Value* caller) {
  const Value callee = evaluate(*node.callee);
  CallArguments call = arguments(node.arguments);
  if (caller != nullptr) call.named.emplace_back("caller", *caller);
  line_ = node.callee->line;
  return call_value(callee, std::move(call));
}

Value Machine::call_value(const Value& callee, CallArguments call) {
  if (callee.is_undefined()) callee.fail_undefined();
  if (callee.holds<const Builtin*>()) {
    return run_builtin(runtime_, *callee.get<const Builtin*>(), std::move(call));
  }
  if (callee.holds<std::shared_ptr<const BoundMethod>>()) {
    const BoundMethod& bound = *callee.get<std::shared_ptr<const BoundMethod>>();
    return run_builtin(runtime_, *bound.method, bound.self, std::move(call));
  }
  if (callee.holds<const MacroObject*>()) {
    return call_macro(*callee.get<const MacroObject*>(), std::move(call));
  }
  fail(fmt::format("'{}' object is not callable", callee.type_name()));
}

void Machine::bind_parameters(const MacroObject& macro, CallArguments& call, Scope& scope) {
  const MacroStatement& node = *macro.node;
  const auto take_named = [&call](std::string_view name) -> std::optional<Value> {
    for (auto it = call.named.begin(); it != call.named.end(); ++it) {
      if (it->first != name) continue;
      Value value = std::move(it->second);
      call.named.erase(it);
      return value;
    }
    return std::nullopt;
  };
  runtime_.budget.step(node.parameters.size() * (call.named.size() + 1));
  std::vector<std::optional<Value>> given(node.parameters.size());
  for (size_t i = 0; i < given.size(); ++i) {
    if (i < call.positional.size()) {
      given[i] = call.positional[i];
    } else {
      given[i] = take_named(node.parameters[i].first);
    }
  }
  if (node.uses_caller) {
    auto caller = take_named("caller");
    scope.set("caller", caller ? *caller : Value::undefined("No caller defined"));
  }
  if (node.uses_kwargs) {
    DictBuilder rest(runtime_.budget);
    for (const auto& [name, value] : call.named) rest.set(name, value);
    scope.set("kwargs", rest.take());
  } else if (!call.named.empty()) {
    fail(fmt::format("macro '{}' takes no keyword argument '{}'", node.name,
                     call.named.front().first));
  }
  if (node.uses_varargs) {
    const size_t taken = std::min(given.size(), call.positional.size());
    scope.set("varargs",
              Value::tuple(ValueList(call.positional.begin() + static_cast<std::ptrdiff_t>(taken),
                                     call.positional.end())));
  } else if (call.positional.size() > given.size()) {
    fail(fmt::format("macro '{}' takes not more than {} argument(s)", node.name, given.size()));
  }
  // Defaults are evaluated inside the macro and see the parameters before them.
  for (size_t i = 0; i < given.size(); ++i) {
    const auto& [name, fallback] = node.parameters[i];
    if (given[i]) {
      scope.set(name, std::move(*given[i]));
    } else if (fallback) {
      scope.set(name, evaluate(*fallback));
    } else {
      scope.set(name, Value::undefined(fmt::format("parameter '{}' was not provided", name)));
    }
  }
}

Value Machine::call_macro(const MacroObject& macro, CallArguments call) {
  const Nested nested(*this);
  runtime_.budget.step(kScopeSteps);
  auto scope = std::make_shared<Scope>(Scope{macro.scope, {}});
  std::swap(scope_, scope);
  bind_parameters(macro, call, *scope_);
  std::string text;
  std::string* before = std::exchange(out_, &text);
  execute(macro.node->body);
  out_ = before;
  std::swap(scope_, scope);
  runtime_.budget.allocate(text.size());
  return Value::text(std::move(text));
}

}  // namespace octet::jinja
