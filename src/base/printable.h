#pragma once
// Text of files and users made safe for a terminal: a name must not move the cursor or recolour it.
#include <string>
#include <string_view>

namespace octet {

// `text` with its control characters as "\x1b": C0, DEL, bytes that are not UTF-8 (0x9b is a
// control to some terminals) and the C1 range in UTF-8 ("\u009b"). Line feeds and tabs stay, and
// lines over 8192 bytes are cut with an ellipsis: for whole messages.
std::string printable(std::string_view text);

// The same for a name inside a line: line feeds and tabs are shown as well, and it is cut after 300
// bytes.
std::string printable_name(std::string_view text);

// The same for a line of several names, or a path: cut after 8192 bytes.
std::string printable_line(std::string_view text);

}  // namespace octet
