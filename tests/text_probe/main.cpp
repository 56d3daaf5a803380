// Answers questions about the tokenizer and the chat template of a model folder, one JSON object a
// line, for comparing them with other programs.
//
//   text_probe tokenizer FOLDER   {"text": TEXT, "special": BOOL}     -> {"ids": [...]}
//                                 {"ids": [...], "skip_special": BOOL} -> {"text": TEXT}
//   text_probe template FOLDER [NAME]
//                                 {"messages": ..., "tools": ..., "documents": ...,
//                                  "add_generation_prompt": BOOL, "variables": {...},
//                                  "now": SECONDS OF UTC}              -> {"output": TEXT}
//
// A question that cannot be answered gives {"error": MESSAGE}. Exit 0 at the end of the questions,
// 2 when the folder cannot be read or the arguments are wrong.
#include <ctime>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "base/error.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace octet {
namespace {

using Json = nlohmann::ordered_json;

Json ask(const Tokenizer& tokenizer, const Json& question) {
  if (question.contains("text"))
    return {{"ids", tokenizer.encode(question["text"].get<std::string>(),
                                     question.value("special", true))}};
  return {{"text", tokenizer.decode(question["ids"].get<std::vector<int32_t>>(),
                                    question.value("skip_special", false))}};
}

Json ask(const ChatTemplate& chat, const Json& question) {
  ChatInput input;
  input.messages = question["messages"];
  if (question.contains("tools")) input.tools = question["tools"];
  if (question.contains("documents")) input.documents = question["documents"];
  input.add_generation_prompt = question.value("add_generation_prompt", true);
  input.variables = question.value("variables", Json::object());
  const std::time_t now = question.value("now", std::time_t{0});
  input.clock = [now] {
    std::tm utc{};
    gmtime_r(&now, &utc);
    return utc;
  };
  return {{"output", chat.render(input)}};
}

template <class Subject>
void answer_all(const Subject& subject) {
  std::string line;
  while (std::getline(std::cin, line)) {
    Json reply;
    try {
      reply = ask(subject, Json::parse(line));
    } catch (const Error& error) {
      reply = {{"error", error.message()}, {"hint", error.hint()}};
    } catch (const Json::exception& error) {
      reply = {{"error", error.what()}};
    }
    std::cout << reply.dump(-1, ' ', false, Json::error_handler_t::replace) << std::endl;
  }
}

int run(const std::vector<std::string>& words) {
  if (words.size() == 2 && words[0] == "tokenizer") {
    answer_all(Tokenizer::load(words[1]));
    return 0;
  }
  if ((words.size() == 2 || words.size() == 3) && words[0] == "template") {
    const auto chat = ChatTemplate::load(words[1], words.size() == 3 ? words[2] : "default");
    if (!chat) throw_error(Code::BadInput, fmt::format("{} has no chat template", words[1]), "");
    answer_all(*chat);
    return 0;
  }
  std::cerr << "usage: text_probe tokenizer|template FOLDER [NAME]\n";
  return 2;
}

}  // namespace
}  // namespace octet

int main(int argc, char** argv) {
  try {
    return octet::run({argv + 1, argv + argc});
  } catch (const octet::Error& error) {
    std::cerr << "text_probe: " << error.message() << "\n";
    return octet::exit_status(error.code());
  }
}
