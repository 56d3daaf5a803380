#include "cli/completion.h"

namespace octet {

const std::vector<std::string_view>& completion_shells() {
  static const std::vector<std::string_view> shells{"bash", "zsh", "fish"};
  return shells;
}

std::string completion_script(const ProgramSpec& program, std::string_view shell) {
  if (shell == "bash") return bash_completion(program);
  if (shell == "zsh") return zsh_completion(program);
  if (shell == "fish") return fish_completion(program);
  throw_error(
      Code::BadInput,
      fmt::format("completion knows {}, got '{}'", fmt::join(completion_shells(), ", "), shell),
      "'octet completion bash' is what most shells of Linux read");
}

}  // namespace octet
