#pragma once
// One row of the table per command file.
#include "cli/commands.h"

namespace octet {

extern const Command kPlanCommand;
extern const Command kRunCommand;
extern const Command kChatCommand;
extern const Command kQuantizeCommand;
extern const Command kImportCommand;
extern const Command kPerplexityCommand;
extern const Command kInspectCommand;
extern const Command kVerifyCommand;
extern const Command kKlCommand;
extern const Command kReportCommand;
extern const Command kKernelsCommand;
extern const Command kProbeCommand;
extern const Command kCompletionCommand;
extern const Command kManCommand;

}  // namespace octet
