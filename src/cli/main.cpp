#include <signal.h>

#include <cstdio>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/mapped_fault.h"

int main(int argc, char** argv) {
  // Under `ulimit -f` a write then fails as on a full disk: a message, and no half-written folder.
  signal(SIGXFSZ, SIG_IGN);
  octet::report_mapped_faults();
  const std::vector<std::string> words(argv + 1, argv + argc);
  return octet::run_program(words, octet::Console(stdout, stderr));
}
