#pragma once
// Parser of whole templates: source to the statements that a rendering runs.
#include <string_view>

#include "text/jinja_ast.h"

namespace octet::jinja {

// The statements of `source`. Throws Error{BadInput} with "line N: " for anything that is not the
// language, and for tags, filters and tests that this subset lacks, each by its name.
StatementList parse(std::string_view source);

}  // namespace octet::jinja
