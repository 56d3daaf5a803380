// octet report: one file about a model on this machine, for a bug report.
#include <fmt/format.h>
#include <gnu/libc-version.h>
#include <sys/utsname.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/atomic_file.h"
#include "base/plural.h"
#include "base/printable.h"
#include "cli/command_list.h"
#include "cli/device_flag.h"
#include "cli/interrupt.h"
#include "cli/model_argument.h"
#include "cli/plan_flags.h"
#include "cli/planned_model.h"
#include "cli/progress.h"
#include "cli/session.h"
#include "evaluate/report.h"
#include "evaluate/verify.h"
#include "plan/explain.h"

namespace octet {
namespace {

using Json = nlohmann::ordered_json;

// The only variables that are reported: those that change how programs of this kind run.
constexpr std::array kVariables{"CUDA_VISIBLE_DEVICES",
                                "GOMP_CPU_AFFINITY",
                                "HF_HOME",
                                "HF_HUB_CACHE",
                                "HF_HUB_OFFLINE",
                                "KMP_AFFINITY",
                                "LANG",
                                "LC_ALL",
                                "LC_CTYPE",
                                "MALLOC_ARENA_MAX",
                                "NO_COLOR",
                                "OCL_ICD_VENDORS",
                                "OMP_NUM_THREADS",
                                "OMP_PROC_BIND",
                                "XDG_CACHE_HOME",
                                "TERM"};

const CommandSpec kSpec{
    .name = "report",
    .summary = "Write one file about a model on this machine, to attach to a bug report",
    .description =
        "It holds the plan, the probe of the machine, the result of octet verify, and versions, "
        "operating system, processor, memory, threads and a fixed list of environment variables. "
        "It holds no weights, no text and no secrets: the home folder is written as ~, words that "
        "look like access tokens are removed. What cannot be done (a model that does not open, a "
        "plan that cannot run) is in the report too, and the exit status is still 0.",
    .positionals = {{.name = "model", .help = kModelHelp, .path = true}},
    .flags = concat({{{.name = "out",
                       .letter = 'o',
                       .kind = FlagKind::Path,
                       .metavar = "FILE",
                       .help = "write to this file; - is the standard output",
                       .default_text = "the standard output"},
                      {.name = "skip-verify", .help = "do not run octet verify for it"},
                      revision_flag()},
                     plan_flags()}),
    .examples = {{"octet report ./model --out report.txt", "what a bug report needs"}},
};

// The value of PRETTY_NAME in /etc/os-release, or an empty text.
std::string distribution() {
  constexpr std::string_view kKey = "PRETTY_NAME=";
  std::ifstream file("/etc/os-release");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(kKey)) continue;
    std::string value = line.substr(kKey.size());
    std::erase(value, '"');
    return value;
  }
  return {};
}

// The kernel's name without that of the machine on the network.
std::string kernel_text() {
  utsname name{};
  if (uname(&name) != 0) return "unknown";
  return fmt::format("{} {} {}", name.sysname, name.release, name.machine);
}

ReportFacts machine_facts(const DeviceInfo& device) {
  const DeviceInfo cpu = probe_cpu();
  return {{"os", distribution()},
          {"kernel", kernel_text()},
          {"libc", fmt::format("glibc {}", gnu_get_libc_version())},
          {"compiler", __VERSION__},
          {"cpu", cpu.name},
          {"features", to_string(cpu.features)},
          {"memory", human_bytes(cpu.memory_bytes)},
          {"threads", fmt::format("{} used, {} usable, {} in the machine", device.threads,
                                  cpu.threads, std::thread::hardware_concurrency())}};
}

ReportFacts variables() {
  ReportFacts facts;
  for (const char* name : kVariables) {
    if (const char* value = std::getenv(name)) facts.emplace_back(name, value);
  }
  return facts;
}

// What was asked for: the words that change the plan.
std::string flags_text(const ParsedArgs& args) {
  std::string text;
  for (const Flag& flag : args.spec().flags) {
    if (flag.group != "Plan" || !args.has(flag.name)) continue;
    std::string value;
    if (flag.kind == FlagKind::Repeated || flag.kind == FlagKind::TextList) {
      for (const std::string& word : args.list(flag.name))
        value += (value.empty() ? "" : ",") + word;
    } else {
      value = args.text(flag.name).value_or("");
    }
    text += fmt::format("{}--{} {}", text.empty() ? "" : " ", flag.name, value);
  }
  return text.empty() ? "none" : text;
}

Json verify_json(const PlannedModel& model) {
  VerifyOptions options;
  options.octet = OCTET_VERSION;
  ProgressBar bar("verifying", static_cast<int64_t>(verify_bytes(model.prepared, options)));
  return Json::parse(to_json(verify(model.prepared, *model.device, options, [&](uint64_t done) {
    InterruptScope::check("no report was written");
    bar.set(static_cast<int64_t>(done));
  })));
}

// Plan and verification; an error on the way becomes a line of the report, an interrupt ends it.
void describe_model(const ParsedArgs& args, const DeviceInfo& device, Report& report) {
  try {
    const PlannedModel model =
        plan_model(model_path(args), device, open_device(args, device), plan_options(args));
    report.plan = Json::parse(to_json(model.prepared.plan));
    report.facts.emplace_back("weights", human_bytes(model.prepared.checkpoint.file_bytes()));
    for (const std::string& failure : model.prepared.plan.failures)
      report.problems.push_back(failure);
    if (!args.on("skip-verify") && report.problems.empty()) report.verify = verify_json(model);
  } catch (const Error& error) {
    if (error.code() == Code::Interrupted) throw;
    report.problems.push_back(error.hint().empty()
                                  ? error.message()
                                  : fmt::format("{} ({})", error.message(), error.hint()));
  }
}

std::string model_word(const ParsedArgs& args) {
  const std::filesystem::path path = *args.argument("model");
  return path.filename().empty() ? path.parent_path().filename().string()
                                 : path.filename().string();
}

// Throws BadInput where `out` is there and is a file of the model's folder, by its own name or by
// links.
void check_output(const ParsedArgs& args, const std::string& out) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (!fs::exists(out, error)) return;
  std::string model;
  try {
    model = model_path(args);
  } catch (const Error&) {
    return;  // for the report to say
  }
  const fs::path folder = folder_of(model);
  const auto is_inside = [&](const fs::path& path) {
    const fs::path place = fs::weakly_canonical(path, error);
    const fs::path home = fs::weakly_canonical(folder, error);
    const fs::path inside = place.lexically_relative(home);
    return !error && !inside.empty() && inside != "." && *inside.begin() != "..";
  };
  const fs::path path(out);
  const fs::path parent = path.has_parent_path() ? path.parent_path() : fs::path(".");
  bool same = is_inside(out) || is_inside(fs::weakly_canonical(parent, error) / path.filename());
  for (fs::directory_iterator it(folder, error), end; !same && !error && it != end;
       it.increment(error)) {
    std::error_code differs;
    same = fs::equivalent(it->path(), path, differs) && !differs;
  }
  if (!same) return;
  throw_error(Code::BadInput, fmt::format("--out {} is a file of the checkpoint {}", out, model),
              "name a file beside the folder");
}

int run(const ParsedArgs& args, const Console& console) {
  const InterruptScope interrupt(InterruptScope::Signals::AnyEnd);
  if (const auto out = args.text("out"); out && *out != "-") check_output(args, *out);
  const DeviceInfo device = device_of(args, true);
  Report report;
  report.octet = OCTET_VERSION;
  report.model = model_word(args);
  report.facts = machine_facts(device);
  report.facts.emplace_back("flags", flags_text(args));
  report.variables = variables();
  report.probe = Json::parse(to_json(device));
  describe_model(args, device, report);
  const char* home = std::getenv("HOME");
  const std::string text = report_text(report, home == nullptr ? "" : home);
  if (const auto out = args.text("out"); out && *out != "-") {
    replace_file(*out, text);
    console.say(fmt::format("wrote {}", *out));
  } else {
    console.out(text);
  }
  return 0;
}

}  // namespace

const Command kReportCommand{&kSpec, run};

}  // namespace octet
