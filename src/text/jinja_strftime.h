#pragma once
// Dates as text, in English whatever the locale of the process.
#include <ctime>
#include <string_view>

#include "text/jinja_limits.h"

namespace octet::jinja {

// Appends `time` in the form of `format`: the directives of C89's strftime, %e %F %T %D %R %h %n %t
// %C %u %G %V, and the flag "-" that drops padding. Throws Error{BadInput} for any other directive.
void append_time(TextBuilder& out, std::string_view format, const std::tm& time);

}  // namespace octet::jinja
