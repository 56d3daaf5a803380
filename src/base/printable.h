#pragma once
// Text of files and users made safe for a terminal: a name must not move the cursor or recolour it.
#include <string>
#include <string_view>

namespace octet {

// `text` with its control characters as "\x1b": C0, DEL and the C1 range in UTF-8 ("\u009b"). Line
// feeds and tabs stay: for whole messages.
std::string printable(std::string_view text);

// The same for a name inside a line: line feeds and tabs are shown as well.
std::string printable_name(std::string_view text);

}  // namespace octet
