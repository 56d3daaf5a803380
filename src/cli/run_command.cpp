// octet run: one prompt, one answer.
#include <fmt/ranges.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/mapped_file.h"
#include "base/printable.h"
#include "cli/command_list.h"
#include "cli/interrupt.h"
#include "cli/model_argument.h"
#include "cli/plan_flags.h"
#include "cli/session.h"
#include "text/chat_prompt.h"

namespace octet {
namespace {

using Json = nlohmann::ordered_json;

const CommandSpec kSpec{
    .name = "run",
    .summary = "Answer one prompt and print the text",
    .description =
        "Without --chat the prompt is continued as it is; with --chat it becomes a user message in "
        "the model's "
        "chat template. A model without tokenizer.json takes --prompt-ids and answers with ids.",
    .positionals = {{.name = "model", .help = kModelHelp, .path = true}},
    .flags = concat(
        {{{.name = "prompt",
           .letter = 'p',
           .kind = FlagKind::Text,
           .metavar = "TEXT",
           .help = "the prompt"},
          {.name = "prompt-ids",
           .kind = FlagKind::IntegerList,
           .metavar = "IDS",
           .help = "the prompt as token ids: 1,2,3"},
          {.name = "chat", .help = "put the prompt into the chat template as a user message"},
          {.name = "system",
           .kind = FlagKind::Text,
           .metavar = "TEXT",
           .help = "a system message before it, with --chat"},
          {.name = "logprobs",
           .kind = FlagKind::Integer,
           .metavar = "K",
           .help =
               "report the K best tokens of every step with their log-probabilities (with --json)",
           .min = 0,
           .max = 1 << 24},
          {.name = "json", .help = "print one JSON object instead of the text"},
          revision_flag()},
         sampling_flags(),
         plan_flags()}),
    .examples = {{"octet run ./model -p 'Once upon a time' -n 64", "continue a text"},
                 {"octet run ./model --chat -p 'Who are you?' --temperature 0.7 --seed 1",
                  "answer a message"},
                 {"octet run ./model -p 'Hello' -n 0 --json", "tokenise only"}},
};

std::vector<int32_t> prompt_tokens(const ParsedArgs& args, const std::string& model,
                                   const std::function<const Tokenizer&()>& tokenizer) {
  if (args.has("prompt") == args.has("prompt-ids")) {
    throw_error(Code::BadInput,
                fmt::format("octet run takes one of --prompt and --prompt-ids, got {}",
                            args.has("prompt") ? "both" : "neither"),
                "octet run MODEL -p TEXT");
  }
  if (args.has("prompt-ids")) {
    if (args.on("chat")) {
      throw_error(Code::BadInput, "--chat needs a text, got --prompt-ids",
                  "use -p TEXT with --chat");
    }
    std::vector<int32_t> ids;
    for (const int64_t id : args.integers("prompt-ids")) {
      if (id < 0 || id > INT32_MAX) {
        throw_error(Code::BadInput, fmt::format("--prompt-ids: {} is not a token id", id),
                    "ids are 0 and up");
      }
      ids.push_back(static_cast<int32_t>(id));
    }
    return ids;
  }
  const std::string prompt = *args.text("prompt");
  if (args.has("system") && !args.on("chat")) {
    throw_error(Code::BadInput, "--system has no use without --chat", "add --chat");
  }
  require_utf8(prompt, "--prompt");
  if (const auto system = args.text("system")) require_utf8(*system, "--system");
  if (!args.on("chat")) return tokenizer().encode(prompt);
  const auto chat = chat_template_of(model);
  if (!chat) {
    throw_error(Code::BadInput, fmt::format("{} has no chat template", model),
                "leave out --chat, or add chat_template.jinja");
  }
  ChatInput input;
  input.messages = nlohmann::ordered_json::array();
  if (const auto system = args.text("system"))
    input.messages.push_back({{"role", "system"}, {"content", *system}});
  input.messages.push_back({{"role", "user"}, {"content", prompt}});
  return encode_chat(*chat, tokenizer(), input);
}

Json logprobs_json(const Answer& answer) {
  Json list = Json::array();
  for (const TokenLogprob& entry : answer.logprobs) {
    Json top = Json::array();
    for (const auto& [id, logprob] : entry.top) top.push_back({id, logprob});
    list.push_back({{"token", entry.token}, {"logprob", entry.logprob}, {"top", std::move(top)}});
  }
  return list;
}

double rate(size_t tokens, double seconds) {
  return seconds > 0 ? static_cast<double>(tokens) / seconds : 0;
}

Json answer_json(const std::vector<int32_t>& prompt, const Answer& answer, double load_s,
                 bool logprobs) {
  Json json;
  json["prompt_tokens"] = prompt;
  json["tokens"] = answer.tokens;
  json["text"] = answer.text;
  json["finish_reason"] = name(answer.finish);
  if (logprobs) json["logprobs"] = logprobs_json(answer);
  const size_t decoded = answer.tokens.empty() ? 0 : answer.tokens.size() - 1;
  json["timings"] = {{"load_s", load_s},
                     {"prefill_s", answer.prefill_s},
                     {"decode_s", answer.decode_s},
                     {"prompt_tokens_per_s", rate(prompt.size(), answer.prefill_s)},
                     {"tokens_per_s", rate(decoded, answer.decode_s)}};
  return json;
}

std::string dump(const Json& json) {
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

bool has_tokenizer(const std::string& model) {
  return is_there(std::filesystem::path(folder_of(model)) / "tokenizer.json");
}

int tokenise(const ParsedArgs& args, const std::string& model, const Console& console) {
  std::optional<Tokenizer> tokenizer;
  if (!args.has("prompt-ids") || has_tokenizer(model)) tokenizer = tokenizer_of(model);
  const std::vector<int32_t> ids =
      prompt_tokens(args, model, [&]() -> const Tokenizer& { return *tokenizer; });
  if (args.on("json")) {
    Answer nothing;
    console.out(dump(answer_json(ids, nothing, 0, args.has("logprobs"))));
    return 0;
  }
  for (const int32_t id : ids) {
    console.out(tokenizer ? fmt::format("{:>7}  {}\n", id,
                                        Json(std::string(tokenizer->token_bytes(id)))
                                            .dump(-1, ' ', false, Json::error_handler_t::replace))
                          : fmt::format("{:>7}\n", id));
  }
  return 0;
}

// Without a tokenizer the answer has no text, and nothing that looks for one can be asked.
void say_no_tokenizer(const std::string& model, const std::vector<std::string>& stops,
                      const Console& console) {
  if (!stops.empty()) {
    throw_error(Code::BadInput,
                fmt::format("--stop \"{}\": {} has no tokenizer.json, so the answer has no text",
                            printable_name(stops.front()), folder_of(model)),
                "leave out --stop, or add tokenizer.json");
  }
  console.say(
      fmt::format("note: {} has no tokenizer.json: the answer is token ids", folder_of(model)));
}

int run(const ParsedArgs& args, const Console& console) {
  const auto start = std::chrono::steady_clock::now();
  const std::string model = model_path(args);
  if (args.integer("max-tokens") == 0) return tokenise(args, model, console);
  const bool json = args.on("json");
  if (args.has("logprobs") && !json) {
    throw_error(Code::BadInput, "--logprobs has nowhere to go without --json", "add --json");
  }
  const std::vector<std::string> stops = stop_texts(args);
  const InterruptScope interrupt(InterruptScope::Signals::AnyEnd);
  Session session(args, model, 1);
  session.print_notes(console);
  Request request = session.request(
      args, prompt_tokens(args, model, [&]() -> const Tokenizer& { return session.tokenizer(); }));
  request.top_logprobs = args.integer("logprobs").value_or(0);
  const std::vector<int32_t> prompt = request.prompt;
  const double load_s =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const auto print = [&](std::string_view text) {
    if (!json) console.out(text);
  };
  const Tokenizer* tokenizer = session.tokenizer_if_any();
  if (tokenizer == nullptr) say_no_tokenizer(model, stops, console);
  const Answer result = answer(session.engine(), tokenizer, std::move(request), stops, print,
                               &InterruptScope::flag());
  if (json) {
    console.out(dump(answer_json(prompt, result, load_s, args.has("logprobs"))));
  } else {
    console.out(fmt::format(
        "{}\n", tokenizer == nullptr ? fmt::format("{}", fmt::join(result.tokens, ",")) : ""));
  }
  return result.finish == FinishReason::Cancelled ? exit_status(Code::Interrupted) : 0;
}

}  // namespace

const Command kRunCommand{&kSpec, run};

}  // namespace octet
