#pragma once
// The flags that say how a model is planned; every command that runs a model has them.
#include "cli/console.h"
#include "cli/flags.h"
#include "plan/model_plan.h"

namespace octet {

std::vector<Flag> plan_flags();

// --threads of every command that computes.
Flag threads_flag(std::string_view group = "Options");

// The values of flags that --prefer and --dtype are like, by name.
std::optional<SchemeId> scheme_flag(const ParsedArgs& args, std::string_view flag);
Carrier carrier_flag(const ParsedArgs& args, std::string_view flag);

// Whether the file of --quarantine has to be there; verify makes it.
enum class QuarantineFile : uint8_t { MustExist, MayBeNew };

// The options of a plan. Throws BadInput naming the flag.
PlanOptions plan_options(const ParsedArgs& args,
                         QuarantineFile quarantine = QuarantineFile::MustExist);

// Says on the standard error what of --quarantine has no effect on the plan.
void say_quarantine_notes(const ModelPlan& plan, const Console& console);

}  // namespace octet
