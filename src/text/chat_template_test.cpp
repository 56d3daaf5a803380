#include "text/chat_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/error.h"

namespace octet {
namespace {

using Json = nlohmann::ordered_json;
using ::testing::AllOf;
using ::testing::HasSubstr;

// A checkpoint folder that is gone after the test.
class ChatTemplateFolder : public ::testing::Test {
 protected:
  ChatTemplateFolder()
      : folder_(std::filesystem::path(::testing::TempDir()) /
                ("octet_chat_template_" +
                 std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()))) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~ChatTemplateFolder() override { std::filesystem::remove_all(folder_); }

  void write(const std::string& name, const std::string& text) {
    std::filesystem::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }
  void write(const std::string& name, const Json& json) { write(name, json.dump()); }

  std::string error_of_load(std::string_view name = "default") {
    try {
      ChatTemplate::load(folder_, name);
      return "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::BadInput);
      return error.message();
    }
  }

  std::filesystem::path folder_;
};

ChatInput hello() {
  ChatInput input;
  input.messages = Json::parse(R"([{"role": "user", "content": "hello"}])");
  return input;
}

std::string error_of(const ChatTemplate& chat, const ChatInput& input) {
  try {
    return "no error, but: " + chat.render(input);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::BadInput);
    return error.message();
  }
}

TEST_F(ChatTemplateFolder, HasNoTemplateWithoutFiles) {
  EXPECT_FALSE(ChatTemplate::load(folder_).has_value());
  write("tokenizer_config.json", Json{{"bos_token", "<s>"}, {"chat_template", nullptr}});
  EXPECT_FALSE(ChatTemplate::load(folder_).has_value());
}

TEST_F(ChatTemplateFolder, ReadsTheTemplateOfTheTokenizerConfig) {
  write("tokenizer_config.json",
        Json{{"chat_template",
              "{{ bos_token }}{{ messages[0].content }}{{ eos_token }}|{{ pad_token }}"},
             {"bos_token", "<s>"},
             {"eos_token", {{"content", "</s>"}, {"lstrip", false}}},
             {"pad_token", nullptr}});
  EXPECT_EQ(ChatTemplate::load(folder_)->render(hello()), "<s>hello</s>|");
}

TEST_F(ChatTemplateFolder, TakesMissingSpecialTokensFromTheMap) {
  write(
      "tokenizer_config.json",
      Json{{"chat_template", "{{ bos_token }}{{ eos_token }}{{ additional_special_tokens|join }}"},
           {"bos_token", "<config>"}});
  write("special_tokens_map.json", Json{{"bos_token", "<map>"},
                                        {"eos_token", "</map>"},
                                        {"additional_special_tokens", {"<a>", "<b>"}}});
  EXPECT_EQ(ChatTemplate::load(folder_)->render(hello()), "<config></map><a><b>");
}

TEST_F(ChatTemplateFolder, PrefersTheJinjaFile) {
  write("tokenizer_config.json", Json{{"chat_template", "from the config"}});
  write("chat_template.jinja", std::string("from the file\n"));
  EXPECT_EQ(ChatTemplate::load(folder_)->render(hello()), "from the file");
}

TEST_F(ChatTemplateFolder, ReadsTheOlderTemplateFileLast) {
  write("chat_template.json", Json{{"chat_template", "old"}});
  EXPECT_EQ(ChatTemplate::load(folder_)->render(hello()), "old");
}

TEST_F(ChatTemplateFolder, PicksNamedTemplates) {
  write("tokenizer_config.json",
        Json{{"chat_template",
              {{{"name", "default"}, {"template", "plain"}},
               {{"name", "rag"}, {"template", "rag: {{ documents[0].title }}"}},
               {{"name", "tool_use"}, {"template", "tools: {{ tools[0].name }}"}}}}});
  ChatInput input = hello();
  EXPECT_EQ(ChatTemplate::load(folder_)->render(input), "plain");
  input.documents = Json::parse(R"([{"title": "T"}])");
  EXPECT_EQ(ChatTemplate::load(folder_, "rag")->render(input), "rag: T");
  input.tools = Json::parse(R"([{"name": "clock"}])");
  EXPECT_EQ(ChatTemplate::load(folder_)->render(input), "tools: clock");
  EXPECT_EQ(ChatTemplate::load(folder_, "rag")->render(input), "rag: T");
  EXPECT_THAT(error_of_load("nope"),
              AllOf(HasSubstr("'nope'"), HasSubstr("default, rag, tool_use")));
}

TEST_F(ChatTemplateFolder, ReadsAdditionalTemplateFiles) {
  write("chat_template.jinja", std::string("plain"));
  write("additional_chat_templates/tool_use.jinja", std::string("with tools"));
  ChatInput input = hello();
  EXPECT_EQ(ChatTemplate::load(folder_)->render(input), "plain");
  input.tools = Json::array();
  EXPECT_EQ(ChatTemplate::load(folder_)->render(input), "with tools");
}

TEST_F(ChatTemplateFolder, RefusesBrokenFilesByNameAndPlace) {
  write("tokenizer_config.json", std::string("{ broken"));
  EXPECT_THAT(error_of_load(),
              HasSubstr("tokenizer_config.json is not JSON: parse error at line 1"));
  write("tokenizer_config.json", Json::array());
  EXPECT_THAT(error_of_load(), HasSubstr("expected an object, got array"));
  write("tokenizer_config.json", Json{{"chat_template", 5}});
  EXPECT_THAT(error_of_load(), AllOf(HasSubstr("/chat_template"), HasSubstr("number")));
  write("tokenizer_config.json", Json{{"chat_template", {{{"name", "default"}}}}});
  EXPECT_THAT(error_of_load(), AllOf(HasSubstr("tokenizer_config.json: /chat_template/0"),
                                     HasSubstr("got no such \"template\"")));
  write("tokenizer_config.json", Json{{"chat_template", "x"}, {"bos_token", 7}});
  EXPECT_THAT(error_of_load(), HasSubstr("/bos_token"));
  write("tokenizer_config.json", Json{{"chat_template", "a\n{% if %}"}});
  EXPECT_THAT(error_of_load(),
              HasSubstr(folder_.string() +
                        ": template 'default' of tokenizer_config.json: /chat_template: line 2"));
  write("chat_template.jinja", std::string("\xC3"));
  EXPECT_THAT(error_of_load(), AllOf(HasSubstr("template 'default' of chat_template.jinja"),
                                     HasSubstr("not UTF-8")));
}

TEST_F(ChatTemplateFolder, WhatFailsInARenderingIsNamedByItsFileAndLine) {
  write("chat_template.jinja", std::string("\n{{ messages[0].x.y }}"));
  EXPECT_THAT(error_of(*ChatTemplate::load(folder_), hello()),
              HasSubstr("template 'default' of chat_template.jinja, line 2: "));
}

TEST_F(ChatTemplateFolder, ALinkThatLeadsNowhereIsNoAbsentFile) {
  std::filesystem::create_symlink("nowhere", folder_ / "chat_template.jinja");
  EXPECT_THAT(error_of_load(), HasSubstr("chat_template.jinja"));
}

TEST(ChatTemplate, KeepsTheOrderOfKeysInTools) {
  const auto chat = ChatTemplate::from_source("{{ tools | tojson }}");
  ChatInput input = hello();
  input.tools = Json::parse(R"([{"z": 1, "a": {"y": 2.0, "b": null}}])");
  EXPECT_EQ(chat.render(input), R"([{"z": 1, "a": {"y": 2.0, "b": null}}])");
}

TEST(ChatTemplate, GivesToolsAndDocumentsAsNoneWhenThereAreNone) {
  const auto chat = ChatTemplate::from_source(
      "{{ tools is none }}{{ documents is none }}{{ add_generation_prompt }}{{ other is defined "
      "}}");
  EXPECT_EQ(chat.render(hello()), "TrueTrueTrueFalse");
}

TEST(ChatTemplate, TakesFurtherVariablesAndLetsThemReplaceSpecialTokens) {
  const auto chat =
      ChatTemplate::from_source("{{ bos_token }}{{ enable_thinking }}", Json{{"bos_token", "<s>"}});
  ChatInput input = hello();
  input.variables = Json{{"enable_thinking", false}, {"bos_token", "[B]"}};
  EXPECT_EQ(chat.render(input), "[B]False");
  input.variables = Json{{"messages", 1}};
  EXPECT_THAT(error_of(chat, input), HasSubstr("'messages'"));
}

TEST(ChatTemplate, ShowsTheTimeOfTheGivenClock) {
  const auto chat = ChatTemplate::from_source("{{ strftime_now('%d %b %Y') }}");
  ChatInput input = hello();
  input.clock = [] {
    std::tm time{};
    time.tm_year = 124;
    time.tm_mon = 6;
    time.tm_mday = 26;
    return time;
  };
  EXPECT_EQ(chat.render(input), "26 Jul 2024");
  input.clock = nullptr;  // the local time: some date of that form
  EXPECT_EQ(chat.render(input).size(), 11u);
}

TEST(ChatTemplate, RefusesInputOfTheWrongShape) {
  const auto chat = ChatTemplate::from_source("x");
  ChatInput input = hello();
  input.messages = Json::object();
  EXPECT_THAT(error_of(chat, input), HasSubstr("/messages: expected an array, got object"));
  input.messages = Json::parse(R"([{}, "text"])");
  EXPECT_THAT(error_of(chat, input), HasSubstr("/messages/1: expected an object, got string"));
  input = hello();
  input.tools = "clock";
  EXPECT_THAT(error_of(chat, input), HasSubstr("/tools: expected an array, got string"));
  input = hello();
  input.variables = Json::array();
  EXPECT_THAT(error_of(chat, input), HasSubstr("expected an object, got array"));
}

TEST(ChatTemplate, RefusesInputThatNoTemplateCanHold) {
  const auto chat = ChatTemplate::from_source("{{ messages }}");
  ChatInput input;
  input.messages = Json::array({Json{{"role", "user"}, {"content", "ab\xFF"}}});
  EXPECT_THAT(error_of(chat, input),
              AllOf(HasSubstr("/messages/0/content"), HasSubstr("not UTF-8: byte 2 of 3")));
  input.messages = Json::array({Json{{"n", UINT64_MAX}}});
  EXPECT_THAT(error_of(chat, input),
              AllOf(HasSubstr("/messages/0/n"), HasSubstr("18446744073709551615")));
  Json deep = Json::array();
  for (int i = 0; i < 1000; ++i) deep = Json::array({deep});
  input.messages = Json::array({Json{{"content", deep}}});
  EXPECT_THAT(error_of(chat, input), HasSubstr("nests deeper than 200"));
}

}  // namespace
}  // namespace octet
