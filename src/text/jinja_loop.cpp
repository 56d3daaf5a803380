#include "text/jinja_loop.h"

#include <algorithm>

namespace octet::jinja {

LoopState::LoopState(Machine& machine, const ForStatement& node, Value items,
                     std::shared_ptr<Scope> outer)
    : machine_(machine),
      node_(node),
      items_(std::move(items)),
      cursor_(items_, machine.runtime_.budget),
      outer_(std::move(outer)) {}

bool LoopState::advance() {
  std::optional<Value> next = after_ ? std::exchange(after_, std::nullopt) : pull();
  if (!next) return false;
  ++index0_;
  before_ = std::move(current_);
  current_ = std::move(*next);
  return true;
}

std::optional<Value> LoopState::pull() {
  if (!read_ahead_.empty()) {
    Value item = std::move(read_ahead_.back());
    read_ahead_.pop_back();
    return item;
  }
  Value item;
  while (outer_ && cursor_.next(item)) {
    if (!node_.filter || passes(item)) return item;
  }
  return std::nullopt;
}

bool LoopState::passes(const Value& item) {
  machine_.runtime_.budget.step(kScopeSteps);
  auto inner = std::make_shared<Scope>(Scope{outer_, {}});
  std::swap(machine_.scope_, inner);
  machine_.assign(node_.target, item);
  const bool passed = machine_.evaluate(*node_.filter).truthy();
  std::swap(machine_.scope_, inner);
  return passed;
}

const std::optional<Value>& LoopState::peek() {
  if (!after_) after_ = pull();
  return after_;
}

int64_t LoopState::length() {
  if (length_) return *length_;
  if (!node_.filter) length_ = length_of(items_, machine_.runtime_.budget);
  if (length_) return *length_;
  ValueList rest;
  while (auto item = pull()) {
    machine_.runtime_.budget.allocate(sizeof(Value));
    rest.push_back(std::move(*item));
  }
  length_ = static_cast<int64_t>(rest.size()) + index0_ + 1 + (after_ ? 1 : 0);
  std::reverse(rest.begin(), rest.end());
  read_ahead_ = std::move(rest);
  return *length_;
}

Value LoopState::attribute(std::string_view name) {
  if (name == "index") return Value::integer(index0_ + 1);
  if (name == "index0") return Value::integer(index0_);
  if (name == "first") return Value::boolean(index0_ == 0);
  if (name == "last") return Value::boolean(!peek());
  if (name == "length") return Value::integer(length());
  if (name == "revindex") return Value::integer(length() - index0_);
  if (name == "revindex0") return Value::integer(length() - index0_ - 1);
  if (name == "depth") return Value::integer(1);
  if (name == "depth0") return Value::integer(0);
  if (name == "previtem") {
    return index0_ == 0 ? Value::undefined("there is no previous item") : before_;
  }
  if (name == "nextitem") return peek() ? *peek() : Value::undefined("there is no next item");
  return Value();
}

}  // namespace octet::jinja
