// octet chat: a conversation at the terminal.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/plural.h"
#include "cli/command_list.h"
#include "cli/interrupt.h"
#include "cli/line_editor.h"
#include "cli/model_argument.h"
#include "cli/plan_flags.h"
#include "cli/session.h"
#include "text/chat_prompt.h"

namespace octet {
namespace {

const CommandSpec kSpec{
    .name = "chat",
    .summary = "Talk with a model: streaming answers, history, line editing",
    .description =
        "Ctrl-C stops the answer, Ctrl-D or /exit ends the conversation. /clear forgets it, "
        "/system TEXT begins "
        "a new one with a system message. SIGTERM and SIGHUP end the program.",
    .positionals = {{.name = "model", .help = kModelHelp, .path = true}},
    .flags = concat(
        {{{.name = "system", .kind = FlagKind::Text, .metavar = "TEXT", .help = "a system message"},
          {.name = "history",
           .kind = FlagKind::Path,
           .metavar = "FILE",
           .help = "keep lines typed at a terminal in this file; those of a pipe are not kept"},
          revision_flag()},
         sampling_flags(),
         plan_flags()}),
    .examples = {{"octet chat ./model --temperature 0.7", "a conversation"}},
};

using Json = nlohmann::ordered_json;

class Conversation {
 public:
  Conversation(const ParsedArgs& args, const std::string& model, const Console& console)
      : args_(args), console_(console), stops_(stop_texts(args)), session_(args, model, 1) {
    auto chat = chat_template_of(model);
    if (!chat) {
      throw_error(Code::BadInput, fmt::format("{} has no chat template", model),
                  "octet run MODEL -p TEXT continues a text without one");
    }
    template_.emplace(std::move(*chat));
    session_.print_notes(console);
    begin(args.text("system"));
  }

  // Forgets everything but a system message.
  void begin(const std::optional<std::string>& system) {
    if (system) require_utf8(*system, "the system message");
    messages_ = Json::array();
    if (system) messages_.push_back({{"role", "system"}, {"content", *system}});
  }

  // Answers one message; an answer that was stopped stays as far as it came, a message that failed
  // is forgotten.
  void say(const std::string& text) {
    require_utf8(text, "the message");
    messages_.push_back({{"role", "user"}, {"content", text}});
    try {
      ChatInput input;
      input.messages = messages_;
      Request request =
          session_.request(args_, encode_chat(*template_, session_.tokenizer(), input));
      check_length(static_cast<int64_t>(request.prompt.size()));
      const InterruptScope interrupt;
      const Answer result = answer(
          session_.engine(), &session_.tokenizer(), std::move(request), stops_,
          [&](std::string_view piece) { console_.out(piece); }, &InterruptScope::flag());
      console_.out(result.finish == FinishReason::Cancelled ? " [stopped]\n" : "\n");
      messages_.push_back({{"role", "assistant"}, {"content", result.text}});
    } catch (...) {
      messages_.erase(messages_.size() - 1);
      throw;
    }
  }

 private:
  // A message that is too long by itself is left to the engine.
  void check_length(int64_t tokens) const {
    const int64_t limit = session_.engine().plan().budget.max_model_len;
    const bool answered = std::any_of(messages_.begin(), messages_.end(), [](const Json& message) {
      return message["role"] == "assistant";
    });
    if (!answered || tokens < limit) return;
    throw_error(Code::BadInput,
                fmt::format("the conversation has {}, the context holds {} with the answer",
                            counted(tokens, "token"), limit),
                "/clear forgets it and begins a new one; --max-model-len sets how much it holds");
  }

  const ParsedArgs& args_;
  const Console& console_;
  std::vector<std::string> stops_;
  Session session_;
  std::optional<ChatTemplate> template_;
  Json messages_;
};

bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n\v\f") == std::string_view::npos;
}

// One typed line. Returns false when the conversation ends.
bool handle(Conversation& conversation, const std::string& line, const Console& console) {
  constexpr std::string_view kSystem = "/system ";
  if (is_blank(line)) return true;
  if (line == "/exit" || line == "/quit") return false;
  if (line == "/clear") {
    conversation.begin(std::nullopt);
    console.err("the conversation is forgotten\n");
  } else if (line.starts_with(kSystem) && !is_blank(line.substr(kSystem.size()))) {
    conversation.begin(line.substr(kSystem.size()));
    console.err("a new conversation begins with this system message\n");
  } else if (line.front() == '/') {
    console.out("commands: /clear, /system TEXT, /exit\n");
  } else {
    conversation.say(line);
  }
  return true;
}

int run(const ParsedArgs& args, const Console& console) {
  // Ctrl-C between a line and its answer stops neither the program nor the next answer.
  const InterruptScope interrupt(InterruptScope::Signals::AnyEnd);
  Conversation conversation(args, model_path(args), console);
  InterruptScope::check("the conversation did not begin");
  LineEditor editor({.history_path = args.text("history").value_or("")});
  std::string history_problem;
  while (!InterruptScope::ended()) {
    const InputLine line = editor.read("> ");
    if (editor.history_problem() != history_problem) {
      history_problem = editor.history_problem();
      console.say(history_problem, "--history FILE keeps lines in another file");
    }
    if (line.kind == InputLine::Kind::End || InterruptScope::ended()) break;
    if (line.kind == InputLine::Kind::Interrupted) continue;
    try {
      if (!handle(conversation, line.text, console)) break;
    } catch (const Error& error) {
      // A message that cannot be answered ends a script, not a conversation.
      if (!editor.interactive() || error.code() == Code::Bug) throw;
      console.say(error.message(), error.hint());
    }
  }
  return InterruptScope::ended() ? exit_status(Code::Interrupted) : 0;
}

}  // namespace

const Command kChatCommand{&kSpec, run};

}  // namespace octet
