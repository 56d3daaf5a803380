// octet perplexity: how well a model predicts a text.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/command_list.h"
#include "cli/interrupt.h"
#include "cli/model_argument.h"
#include "cli/plan_flags.h"
#include "cli/progress.h"
#include "cli/session.h"
#include "cli/text_file.h"
#include "evaluate/perplexity.h"

namespace octet {
namespace {

const CommandSpec kSpec{
    .name = "perplexity",
    .summary = "Measure how well a model predicts a text file",
    .description =
        "The text is one sequence where it fits the context, else consecutive windows of the whole "
        "context.",
    .positionals = {{.name = "model", .help = kModelHelp, .path = true}},
    .flags = concat({{{.name = "file",
                       .letter = 'f',
                       .kind = FlagKind::Path,
                       .metavar = "FILE",
                       .help = "the text, UTF-8"},
                      {.name = "json", .help = "print one JSON object"},
                      revision_flag()},
                     plan_flags()}),
    .examples = {{"octet perplexity ./model --file text.txt --dtype float32 --json",
                  "compare with an oracle"}},
};

int run(const ParsedArgs& args, const Console& console) {
  const auto file = args.text("file");
  if (!file) throw_error(Code::BadInput, "octet perplexity needs a text", "add --file FILE");
  const std::string text = read_flag_file(*file, "--file");
  const InterruptScope interrupt(InterruptScope::Signals::AnyEnd);
  Session session(args, model_path(args), 1);
  const std::vector<int32_t> tokens = encode_file(session.tokenizer(), text, *file);
  ProgressBar bar("scoring", static_cast<int64_t>(tokens.size()), {"tokens"});
  const auto advance = [&](int64_t done) {
    InterruptScope::check("the text was not read to its end");
    bar.set(done);
  };
  advance(0);
  const Perplexity result = perplexity(session.engine(), tokens, advance);
  bar.finish();
  if (args.on("json")) {
    const nlohmann::ordered_json json{{"tokens", result.tokens},
                                      {"scored", result.scored},
                                      {"nll", result.nll},
                                      {"perplexity", result.perplexity()}};
    console.out(json.dump(2) + "\n");
  } else {
    console.out(fmt::format("tokens {}  nll {:.6f}  perplexity {:.4f}\n", result.tokens, result.nll,
                            result.perplexity()));
  }
  return 0;
}

}  // namespace

const Command kPerplexityCommand{&kSpec, run};

}  // namespace octet
