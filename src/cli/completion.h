#pragma once
// Shell completion scripts made from the flag table; `octet completion bash` prints one.
#include <string>
#include <string_view>
#include <vector>

#include "cli/flags.h"

namespace octet {

// The shells that completion_script knows: bash, zsh, fish.
const std::vector<std::string_view>& completion_shells();

// A script that completes commands, flags, choices and file names. For bash and zsh:
// source <(octet completion bash); for fish: octet completion fish | source.
// Throws Error{BadInput} for another shell.
std::string completion_script(const ProgramSpec& program, std::string_view shell);

// The three scripts, each by its shell's name.
std::string bash_completion(const ProgramSpec& program);
std::string zsh_completion(const ProgramSpec& program);
std::string fish_completion(const ProgramSpec& program);

}  // namespace octet
