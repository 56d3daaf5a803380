#include "cli/console.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/printable.h"

namespace octet {

void Console::out(std::string_view text) const {
  const bool written = std::fwrite(text.data(), 1, text.size(), out_) == text.size();
  if (!written || std::fflush(out_) != 0) {
    throw_error(Code::Environment, fmt::format("cannot write the output: {}", std::strerror(errno)),
                "check the disk and the program that reads the output");
  }
}

void Console::err(std::string_view text) const {
  std::fwrite(text.data(), 1, text.size(), err_);
}

void Console::say(std::string_view message, std::string_view hint) const {
  err(fmt::format("octet: {}\n", printable(message)));
  if (!hint.empty()) err(fmt::format("  hint: {}\n", printable(hint)));
}

bool Console::out_is_terminal() const {
  return isatty(fileno(out_)) == 1;
}

}  // namespace octet
