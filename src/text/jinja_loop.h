#pragma once
// The state of one running `for` loop, which is also its `loop` variable.
#include <memory>
#include <optional>

#include "text/jinja_machine.h"

namespace octet::jinja {

// Takes items one at a time and tests the loop's filter only when an item is needed, so that a
// filter sees what the body changed; looks one item ahead only when the template asks.
class LoopState : public LoopObject {
 public:
  // Throws Error{BadInput} when `items` cannot be iterated.
  LoopState(Machine& machine, const ForStatement& node, Value items, std::shared_ptr<Scope> outer);

  // Moves to the next item; false at the end.
  bool advance();
  const Value& current() const { return current_; }
  // Lets go of the scopes around the loop: called at its end, since they may hold this object.
  void release() { outer_.reset(); }

  Value attribute(std::string_view name) override;
  int64_t index0() const override { return index0_; }
  int64_t length() override;
  int depth() const override { return items_.depth() + 1; }

 private:
  std::optional<Value> pull();
  bool passes(const Value& item);
  const std::optional<Value>& peek();

  Machine& machine_;
  const ForStatement& node_;
  Value items_;
  Cursor cursor_;
  std::shared_ptr<Scope> outer_;
  Value current_;
  Value before_;
  std::optional<Value> after_;
  ValueList read_ahead_;  // items that length() had to take, the next one last
  std::optional<int64_t> length_;
  int64_t index0_ = -1;
};

}  // namespace octet::jinja
