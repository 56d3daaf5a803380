// Compares with what Python's jinja2 renders, configured as transformers configures it
// (testing/data/templates/goldens.json, made by tools/golden_templates.py).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "text/chat_template.h"
#include "text/jinja_print.h"
#include "text/jinja_template.h"

namespace octet {
namespace {

using Json = nlohmann::ordered_json;
using ::testing::HasSubstr;

const std::filesystem::path kFolder = "testing/data/templates";

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

const Json& goldens() {
  static const Json json = Json::parse(read(kFolder / "goldens.json"));
  return json;
}

// The clock that the goldens were made with.
std::tm golden_time() {
  std::tm time{};
  time.tm_year = 124;
  time.tm_mon = 6;
  time.tm_mday = 6;
  time.tm_hour = 14;
  time.tm_min = 5;
  time.tm_sec = 9;
  time.tm_wday = 6;
  time.tm_yday = 187;
  return time;
}

// What a rendering gave: its text, or the error's message.
struct Outcome {
  bool failed;
  std::string text;
};

template <class Render>
Outcome outcome_of(Render&& render) {
  try {
    return {false, render()};
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::BadInput) << error.message();
    return {true, error.message()};
  }
}

void expect_golden(const Json& golden, const Outcome& outcome, const std::string& what) {
  SCOPED_TRACE(what);
  if (golden.contains("output")) {
    EXPECT_FALSE(outcome.failed) << outcome.text;
    EXPECT_EQ(outcome.text, golden["output"].get<std::string>());
    return;
  }
  const auto kind = golden["error"].get<std::string>();
  const auto message = golden["message"].get<std::string>();
  ASSERT_TRUE(outcome.failed) << "expected " << kind << ": " << message << "\ngot " << outcome.text;
  if (kind == "raised") {
    EXPECT_EQ(outcome.text, message);
  } else if (kind == "undefined") {
    EXPECT_THAT(outcome.text, HasSubstr(message));
  } else {
    EXPECT_THAT(outcome.text, HasSubstr("line "));
  }
}

TEST(JinjaGolden, EveryConstructRendersAsJinjaDoes) {
  jinja::Budget budget{jinja::Limits{}};
  const jinja::Value variables = jinja::from_json(goldens()["variables"], "", budget);
  ASSERT_GT(goldens()["snippets"].size(), 300u);
  for (const Json& golden : goldens()["snippets"]) {
    const auto source = golden["source"].get<std::string>();
    const Outcome outcome =
        outcome_of([&] { return jinja::Template(source, "test").render(variables, golden_time); });
    expect_golden(golden, outcome, source);
  }
}

TEST(JinjaGolden, NotTheLanguageIsRefusedWhenItIsCompiled) {
  size_t checked = 0;
  for (const Json& golden : goldens()["snippets"]) {
    if (golden.value("error", "") != "syntax") continue;
    const auto source = golden["source"].get<std::string>();
    EXPECT_THROW(jinja::Template(source, "test"), Error) << source;
    ++checked;
  }
  EXPECT_GT(checked, 60u);
}

ChatInput input_of(const Json& conversation) {
  ChatInput input;
  input.messages = conversation["messages"];
  input.tools = conversation.value("tools", Json());
  input.documents = conversation.value("documents", Json());
  input.add_generation_prompt = conversation.value("add_generation_prompt", true);
  input.variables = conversation.value("variables", Json::object());
  input.clock = golden_time;
  return input;
}

TEST(ChatTemplateGolden, EveryStyleRendersEveryConversationAsJinjaDoes) {
  size_t checked = 0;
  for (const Json& golden : goldens()["chats"]) {
    const auto file = golden["template"].get<std::string>();
    const auto name = golden["conversation"].get<std::string>();
    const auto found =
        std::find_if(goldens()["conversations"].begin(), goldens()["conversations"].end(),
                     [&](const Json& conversation) { return conversation["name"] == name; });
    ASSERT_NE(found, goldens()["conversations"].end());
    const ChatTemplate chat = ChatTemplate::from_source(
        read(kFolder / file), found->value("special_tokens", Json::object()));
    const Outcome outcome = outcome_of([&] { return chat.render(input_of(*found)); });
    expect_golden(golden, outcome, file + ", " + name);
    ++checked;
  }
  EXPECT_GE(checked, 100u);
}

}  // namespace
}  // namespace octet
