#pragma once
// A weight file that becomes shorter or unreadable while it is used ends the program with a message
// and not with a signal.

namespace octet {

// From now on SIGBUS in a mapped file prints its name to the standard error and ends the process
// with the exit status of Code::Environment; any other SIGBUS is left to its default. Work that was
// under way is lost, and its unfinished output is removed.
void report_mapped_faults();

}  // namespace octet
