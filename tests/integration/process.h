#pragma once
// Runs the program under test as its users do: as a process.
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace octet {

// How a process ended and what it wrote.
struct Ran {
  int status = -1;  // exit status; -1 when a signal ended it
  int signal = 0;
  std::string out;
  std::string err;
};

struct RunOptions {
  std::string input = {};                       // of its standard input
  std::optional<uint64_t> max_file_bytes = {};  // writes past it fail, as on a full disk
  std::optional<std::string> output_path = {};  // the standard output goes to this file instead
  int signal = 0;                               // sent once `when` says true; it is asked all along
  std::function<bool()> when = {};
  const char* program = nullptr;  // instead of octet_program()
};

// Runs `octet WORDS...` to its end.
Ran run_octet(const std::vector<std::string>& words, const RunOptions& options = {});

// For a failed assertion: the words and everything the process said.
std::string describe_run(const std::vector<std::string>& words, const Ran& ran);

// The path of the program, and of those with a wrong linear or attention kernel (tests/planted).
const char* octet_program();
const char* planted_program();
const char* planted_attention_program();

}  // namespace octet
