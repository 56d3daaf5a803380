// Execution of statements.
#include "text/jinja_loop.h"
#include "text/jinja_machine.h"
#include "text/jinja_print.h"

namespace octet::jinja {

struct Machine::Executor {
  Machine& m;

  Flow operator()(const TextStatement& node) const {
    m.write(node.text);
    return Flow::Normal;
  }
  Flow operator()(const OutputStatement& node) const {
    const Value value = m.evaluate(*node.value);
    if (value.is_text()) {
      m.write(value.bytes());
    } else {
      m.write(to_text(value, m.runtime_.budget));
    }
    return Flow::Normal;
  }
  Flow operator()(const ForStatement& node) const { return m.for_loop(node); }
  Flow operator()(const IfStatement& node) const {
    for (const auto& [test, body] : node.branches) {
      if (m.evaluate(*test).truthy()) return m.execute(body);
    }
    return m.execute(node.otherwise);
  }
  Flow operator()(const SetStatement& node) const {
    m.assign(node.target, m.evaluate(*node.value));
    return Flow::Normal;
  }
  Flow operator()(const SetBlockStatement& node) const { return m.set_block(node); }
  Flow operator()(const MacroStatement& node) const {
    m.scope_->set(node.name, Value(Value::Data(&m.define(node))));
    return Flow::Normal;
  }
  Flow operator()(const CallBlockStatement& node) const {
    m.call_block(node);
    return Flow::Normal;
  }
  Flow operator()(const FilterBlockStatement& node) const { return m.filter_block(node); }
  Flow operator()(const WithStatement& node) const { return m.with(node); }
  Flow operator()(const GenerationStatement& node) const { return m.execute_inner(node.body); }
  Flow operator()(const BreakStatement&) const { return Flow::Break; }
  Flow operator()(const ContinueStatement&) const { return Flow::Continue; }
};

std::string Machine::render(const StatementList& statements) {
  std::string text;
  out_ = &text;
  execute(statements);
  return text;
}

Machine::Flow Machine::execute(const StatementList& statements) {
  if (++depth_ > runtime_.budget.limits().depth) {
    fail(fmt::format("the template nests deeper than {} levels", runtime_.budget.limits().depth),
         "look for a macro that calls itself without end");
  }
  Flow flow = Flow::Normal;
  for (const Statement& statement : statements) {
    runtime_.budget.step();
    line_ = statement.line;
    flow = std::visit(Executor{*this}, statement.node);
    if (flow != Flow::Normal) break;
  }
  --depth_;
  return flow;
}

Machine::Flow Machine::execute_inner(const StatementList& statements) {
  runtime_.budget.step(kScopeSteps);
  auto scope = std::make_shared<Scope>(Scope{scope_, {}});
  std::swap(scope_, scope);
  const Flow flow = execute(statements);
  std::swap(scope_, scope);
  return flow;
}

void Machine::write(std::string_view text) {
  runtime_.budget.check_text(out_->size() + text.size());
  runtime_.budget.scan(text.size());
  *out_ += text;
}

Machine::Flow Machine::for_loop(const ForStatement& node) {
  runtime_.budget.step(kScopeSteps);
  const auto outer = scope_;
  const auto loop = std::make_shared<LoopState>(*this, node, evaluate(*node.items), outer);
  // Also when an error leaves the loop: a scope around it may hold the loop.
  const std::unique_ptr<LoopState, void (*)(LoopState*)> release(
      loop.get(), [](LoopState* state) { state->release(); });
  const Value loop_value(Value::Data(std::static_pointer_cast<LoopObject>(loop)));
  bool completed = false;  // some iteration came to its end; as in Jinja, break and continue do not
  while (loop->advance()) {
    runtime_.budget.step(kScopeSteps);
    scope_ = std::make_shared<Scope>(Scope{outer, {}});
    scope_->set("loop", loop_value);
    assign(node.target, loop->current());
    const Flow flow = execute(node.body);
    completed |= flow == Flow::Normal;
    if (flow == Flow::Break) break;
  }
  scope_ = outer;
  if (completed || node.otherwise.empty()) return Flow::Normal;
  return execute_inner(node.otherwise);
}

Machine::Flow Machine::set_block(const SetBlockStatement& node) {
  runtime_.budget.step(kScopeSteps);
  const auto outer = scope_;
  scope_ = std::make_shared<Scope>(Scope{outer, {}});
  std::string text;
  std::string* before = std::exchange(out_, &text);
  const Flow flow = execute(node.body);
  out_ = before;
  runtime_.budget.allocate(text.size());
  if (flow == Flow::Normal) {
    const Value value = filtered(node.filter.get(), Value::text(std::move(text)));
    scope_ = outer;
    assign(node.target, value);
  }
  scope_ = outer;
  return flow;
}

Machine::Flow Machine::filter_block(const FilterBlockStatement& node) {
  runtime_.budget.step(kScopeSteps);
  const auto outer = scope_;
  scope_ = std::make_shared<Scope>(Scope{outer, {}});
  std::string text;
  std::string* before = std::exchange(out_, &text);
  const Flow flow = execute(node.body);
  out_ = before;
  runtime_.budget.allocate(text.size());
  if (flow == Flow::Normal) {
    write(to_text(filtered(node.filter.get(), Value::text(std::move(text))), runtime_.budget));
  }
  scope_ = outer;
  return flow;
}

Machine::Flow Machine::with(const WithStatement& node) {
  runtime_.budget.step(kScopeSteps);
  auto scope = std::make_shared<Scope>(Scope{scope_, {}});
  for (const auto& [target, value] : node.assignments) scope->set(target.name, evaluate(*value));
  std::swap(scope_, scope);
  const Flow flow = execute(node.body);
  std::swap(scope_, scope);
  return flow;
}

const MacroObject& Machine::define(const MacroStatement& node) {
  runtime_.budget.allocate(sizeof(MacroObject));
  return macros_.emplace_back(MacroObject{&node, scope_});
}

void Machine::call_block(const CallBlockStatement& node) {
  const Value caller(Value::Data(&define(node.caller)));
  const Value result = call(std::get<CallNode>(node.call->node), &caller);
  write(to_text(result, runtime_.budget));
}

void Machine::assign(const Target& target, const Value& value) {
  if (target.targets.empty()) {
    runtime_.budget.step(scope_->variables.size() / 16);
    if (target.attribute.empty()) {
      scope_->set(target.name, value);
      return;
    }
    const Value* object = scope_->find(target.name, runtime_.budget);
    if (object == nullptr) object = variables_.find(target.name);
    if (object == nullptr || !object->holds<Namespace*>()) {
      fail("cannot assign attribute on non-namespace object",
           fmt::format("{} must be made by namespace()", target.name));
    }
    Namespace& space = *object->get<Namespace*>();
    runtime_.budget.step(space.attributes.size() / 16);
    runtime_.budget.allocate(kObjectBytes);
    space.set(target.attribute, value);
    return;
  }
  const ValueList items = collect(value, runtime_.budget);
  if (items.size() != target.targets.size()) {
    fail(fmt::format("{} values to unpack, expected {}", items.size(), target.targets.size()));
  }
  for (size_t i = 0; i < items.size(); ++i) assign(target.targets[i], items[i]);
}

}  // namespace octet::jinja
