#include "text/jinja_builtin.h"

#include <algorithm>

namespace octet::jinja {
namespace {

struct Parameters {
  std::vector<std::string_view> names;
  size_t required = 0;
  bool rest = false;        // "*"
  bool named_rest = false;  // "**"
};

Parameters parse_parameters(std::string_view text) {
  Parameters parameters;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    std::string_view name = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (name == "*") {
      parameters.rest = true;
    } else if (name == "**") {
      parameters.named_rest = true;
    } else if (name.ends_with('?')) {
      parameters.names.push_back(name.substr(0, name.size() - 1));
    } else {
      parameters.names.push_back(name);
      parameters.required = parameters.names.size();
    }
  }
  return parameters;
}

Arguments bind(const Builtin& builtin, CallArguments call) {
  const Parameters parameters = parse_parameters(builtin.parameters);
  Arguments bound;
  bound.slots.resize(parameters.names.size());
  bound.given.resize(parameters.names.size());
  for (size_t i = 0; i < call.positional.size(); ++i) {
    if (i < parameters.names.size()) {
      bound.slots[i] = std::move(call.positional[i]);
      bound.given[i] = true;
    } else if (parameters.rest) {
      bound.rest.positional.push_back(std::move(call.positional[i]));
    } else {
      fail(fmt::format("{}() takes at most {} arguments, {} given", builtin.name,
                       parameters.names.size(), call.positional.size()));
    }
  }
  for (auto& [name, value] : call.named) {
    const auto found = std::find(parameters.names.begin(), parameters.names.end(), name);
    const auto at = static_cast<size_t>(found - parameters.names.begin());
    if (found == parameters.names.end()) {
      if (!parameters.named_rest) {
        fail(fmt::format("{}() has no argument named '{}'", builtin.name, name));
      }
      bound.rest.named.emplace_back(std::move(name), std::move(value));
      continue;
    }
    if (bound.given[at]) {
      fail(fmt::format("{}() got two values for its argument '{}'", builtin.name, name));
    }
    bound.slots[at] = std::move(value);
    bound.given[at] = true;
  }
  for (size_t i = 0; i < parameters.required; ++i) {
    if (!bound.given[i]) {
      fail(fmt::format("{}() misses its argument '{}'", builtin.name, parameters.names[i]));
    }
  }
  return bound;
}

}  // namespace

const Value* CallArguments::find(std::string_view name) const {
  for (const auto& [key, value] : named) {
    if (key == name) return &value;
  }
  return nullptr;
}

int64_t Arguments::integer(size_t i, int64_t fallback, std::string_view what) const {
  if (!given[i]) return fallback;
  if (slots[i].is_undefined()) slots[i].fail_undefined();
  const auto value = slots[i].as_integer();
  if (!value) fail(fmt::format("{}: expected an int, got a {}", what, slots[i].type_name()));
  return *value;
}

const std::string& Arguments::text(size_t i, std::string_view what) const {
  if (given[i] && slots[i].is_undefined()) slots[i].fail_undefined();
  if (!slots[i].is_text()) {
    fail(fmt::format("{}: expected a str, got a {}", what, slots[i].type_name()));
  }
  return slots[i].bytes();
}

Value run_builtin(Runtime& runtime, const Builtin& builtin, CallArguments arguments) {
  return builtin.run(runtime, bind(builtin, std::move(arguments)));
}

Value run_builtin(Runtime& runtime, const Builtin& builtin, const Value& subject,
                  CallArguments arguments) {
  arguments.positional.insert(arguments.positional.begin(), subject);
  return run_builtin(runtime, builtin, std::move(arguments));
}

const Builtin* find_builtin(BuiltinTable table, std::string_view name) {
  const auto found = std::find_if(table.begin(), table.end(),
                                  [&](const Builtin& builtin) { return builtin.name == name; });
  return found == table.end() ? nullptr : &*found;
}

const Builtin* find_filter(std::string_view name) {
  const Builtin* found = find_builtin(text_filters(), name);
  return found != nullptr ? found : find_builtin(list_filters(), name);
}

const Builtin* find_test(std::string_view name) {
  return find_builtin(tests(), name);
}

}  // namespace octet::jinja
