#pragma once
// A compiled template: parsed once, rendered any number of times, by any number of threads.
#include <string>
#include <string_view>

#include "text/jinja_ast.h"

namespace octet::jinja {

class Template {
 public:
  // Parses `source`. `name` and the `file` that it comes from, if any, stand in error messages.
  // Throws Error{BadInput} for what is not the
  // language or not in this subset, with the line.
  Template(std::string_view source, const std::string& name, const std::string& file = {});

  // The text for `variables`, a dict. Throws Error{BadInput}: the template's own message for
  // raise_exception (the hint says where), else "template 'NAME' of FILE, line N: what went wrong".
  std::string render(const Value& variables, const Clock& clock, const Limits& limits = {}) const;

 private:
  std::string name_;  // "template 'NAME' of FILE"
  StatementList statements_;
};

}  // namespace octet::jinja
