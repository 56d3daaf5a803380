#include "text/jinja_template.h"

#include "text/jinja_machine.h"
#include "text/jinja_parser.h"

namespace octet::jinja {
namespace {

// Far above any published template; bounds the memory of the syntax tree.
constexpr size_t kMaxSourceBytes = 4u << 20;

}  // namespace

Template::Template(std::string_view source, const std::string& name, const std::string& file)
    : name_(file.empty() ? fmt::format("template '{}'", name)
                         : fmt::format("template '{}' of {}", name, file)) {
  try {
    if (source.size() > kMaxSourceBytes) {
      fail(fmt::format("the source has {} bytes, at most {} are allowed", source.size(),
                       kMaxSourceBytes));
    }
    statements_ = parse(source);
  } catch (const Error& error) {
    throw error.with(name_);
  }
}

std::string Template::render(const Value& variables, const Clock& clock,
                             const Limits& limits) const {
  Machine machine(limits, clock, variables.dict());
  try {
    return machine.render(statements_);
  } catch (const RaisedByTemplate& raised) {
    fail(raised.message.empty() ? "the template raised an error without a message" : raised.message,
         fmt::format("raised by line {} of the {}", machine.line(), name_));
  } catch (const Error& error) {
    throw error.with(fmt::format("{}, line {}", name_, machine.line()));
  }
}

}  // namespace octet::jinja
