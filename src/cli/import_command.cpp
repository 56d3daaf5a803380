// octet import: a GGUF file to a Hugging Face folder in bf16.
#include <fmt/format.h>

#include <numeric>

#include "base/plural.h"
#include "base/printable.h"
#include "cli/command_list.h"
#include "cli/interrupt.h"
#include "cli/progress.h"
#include "convert/gguf_import.h"
#include "plan/explain.h"

namespace octet {
namespace {

const CommandSpec kSpec{
    .name = "import",
    .summary = "Make a Hugging Face checkpoint (bf16) of a GGUF file",
    .description =
        "Reads tensors of the types F32, F16, BF16, Q8_0, Q4_0 and Q4_1 of models of the "
        "architectures llama, qwen2 and qwen3, with their tokenizer and chat template. Every value "
        "is the one that the GGUF stands for, rounded once to bf16. The output folder appears "
        "whole or not at all. It must be new or empty, and lie in a folder that is there.",
    .positionals = {{.name = "gguf", .help = "file to read", .path = true},
                    {.name = "out", .help = "folder to make", .path = true}},
    .flags = {{.name = "max-shard-size",
               .kind = FlagKind::Size,
               .metavar = "BYTES",
               .help = "begin a new safetensors file past this size",
               .default_value = "5g",
               .min = 1,
               .max = 1e15}},
    .examples = {{"octet import SmolLM2.Q8_0.gguf ./SmolLM2", "a folder for all other commands"}},
};

uint64_t bytes_of_tensors(const GgufFile& file) {
  const auto tensors = file.tensors();
  return std::accumulate(tensors.begin(), tensors.end(), uint64_t{0},
                         [](uint64_t sum, const GgufTensor& tensor) { return sum + tensor.bytes; });
}

int run(const ParsedArgs& args, const Console& console) {
  const InterruptScope interrupt(InterruptScope::Signals::AnyEnd);
  const GgufFile input = GgufFile::open(*args.argument("gguf"));
  ImportJob job;
  job.input = &input;
  job.output = *args.argument("out");
  job.max_shard_bytes = static_cast<uint64_t>(*args.integer("max-shard-size"));
  ProgressBar bar("importing", static_cast<int64_t>(bytes_of_tensors(input)));
  const ImportSummary done = import_gguf(job, [&](ImportProgress p) {
    InterruptScope::check("no output was made");
    bar.set(static_cast<int64_t>(p.bytes_done));
  });
  bar.finish();
  for (const std::string& note : done.notes) console.say(fmt::format("note: {}", note));
  console.out(fmt::format("{}: {} in bf16, {} in {}; {} from {}\n",
                          printable_line(job.output.string()), done.architecture,
                          counted(done.tensors, "tensor"), counted(done.files, "file"),
                          human_bytes(done.bytes_out), human_bytes(done.bytes_in)));
  return 0;
}

}  // namespace

const Command kImportCommand{&kSpec, run};

}  // namespace octet
