// Broken texts, tokenizers and templates: one message, the right exit status.
#include <gmock/gmock.h>

#include <cmath>

#include "tests/integration/bad_input.h"

namespace octet {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using Words = std::vector<std::string>;
namespace fs = std::filesystem;

using BadText = BadInput;

TEST_F(BadText, FilesOfTextThatCannotBeReadAreNotTakenAsAbsent) {
  const std::string in = model().string();
  const std::string out = (folder_.path() / "out").string();
  for (const char* name : {"tokenizer.json", "generation_config.json", "chat_template.jinja"}) {
    fs::remove_all(model());
    write(sound(tiny_plain()));
    const fs::path file = model() / name;
    fs::remove(file);
    fs::create_symlink(name, file);  // a link to itself
    EXPECT_THAT(fails({"run", in, "--chat", "-p", "hi", "-n", "1"}, 4).err, HasSubstr(name));
    EXPECT_THAT(fails({"quantize", in, out}, 4).err, HasSubstr(name));
    const Ran ran = run_octet({"inspect", in});
    EXPECT_EQ(ran.status, 1);
    EXPECT_THAT(ran.out, HasSubstr(name));
  }
  fs::remove(model() / "chat_template.jinja");
  fs::create_directory(model() / "chat_template.jinja");
  EXPECT_THAT(fails({"run", in, "--chat", "-p", "hi", "-n", "1"}, 2).err,
              HasSubstr("chat_template.jinja"));
}

TEST_F(BadText, ATemplateThatRaisesSaysWhat) {
  write(sound());
  write_bytes(model() / "chat_template.jinja", "{{ raise_exception('only even days') }}");
  const Words run{"run", model().string(), "--chat", "-p", "bread"};
  EXPECT_THAT(fails(run, 2).err, HasSubstr("only even days"));
  // From a pipe the first message that cannot be answered ends the program.
  EXPECT_THAT(fails({"chat", model().string()}, 2, {.input = "bread\n"}).err,
              HasSubstr("only even days"));
}

TEST_F(BadText, NoTokenizerAndNoTemplate) {
  write(sound());
  fs::remove(model() / "chat_template.jinja");
  EXPECT_THAT(fails({"run", model().string(), "--chat", "-p", "bread"}, 2).err,
              HasSubstr("chat template"));
  EXPECT_THAT(fails({"chat", model().string()}, 2).err, HasSubstr("chat template"));
  fs::remove(model() / "tokenizer.json");
  EXPECT_THAT(fails({"run", model().string(), "-p", "bread"}, 2).err, HasSubstr("tokenizer.json"));
}

TEST_F(BadText, ATokenizerWithAnUnknownPart) {
  write(sound());
  json tokenizer = read_json(model() / "tokenizer.json");
  tokenizer["model"]["type"] = "Unigram";
  write_bytes(model() / "tokenizer.json", tokenizer.dump());
  EXPECT_THAT(fails({"run", model().string(), "-p", "bread"}, 2).err, HasSubstr("Unigram"));
}

TEST_F(BadText, AGenerationConfigWithNonsense) {
  write(sound());
  write_bytes(model() / "generation_config.json", R"({"do_sample": true, "temperature": "hot"})");
  EXPECT_THAT(fails({"run", model().string(), "-p", "bread"}, 2).err, HasSubstr("temperature"));
}

TEST_F(BadText, ATextFileThatIsNotUtf8) {
  write(sound());
  const std::string text = (folder_.path() / "text.txt").string();
  write_bytes(text, "bread \xC3\x28 water");
  const std::string in = model().string();
  for (const Words& words :
       {Words{"perplexity", in, "--file", text}, Words{"kl", in, in, "--file", text}}) {
    EXPECT_THAT(fails(words, 2).err, AllOf(HasSubstr("UTF-8"), HasSubstr(text)));
  }
  write_bytes(text, "");
  for (const Words& words :
       {Words{"perplexity", in, "--file", text}, Words{"kl", in, in, "--file", text}}) {
    EXPECT_THAT(fails(words, 2).err, AllOf(HasSubstr("0 tokens"), HasSubstr(text)));
  }
}

TEST_F(BadText, TheModelOfTwoIsNamed) {
  TinyCheckpoint checkpoint = sound();
  checkpoint.remove(std::string(kQ) + ".weight_scale");
  write(checkpoint);
  const std::string good = (folder_.path() / "good").string();
  sound().write(good);
  add_text_files(good);
  const std::string text = (folder_.path() / "text.txt").string();
  write_bytes(text, "bread and water");
  EXPECT_THAT(fails({"kl", good, model().string(), "-f", text}, 2).err,
              StartsWith("octet: " + model().string() + ": "));
}

TEST_F(BadText, TemplatesThatMakeNoPrompt) {
  write(sound());
  const std::string in = model().string();
  const Words words{"run", in, "--chat", "-p", "hi"};
  const auto with_template = [&](const char* source) {
    write_bytes(model() / "chat_template.jinja", source);
    return fails(words, 2).err;  // with a hint
  };
  EXPECT_THAT(with_template("{{ raise_exception('not so') }}"),
              AllOf(HasSubstr("not so"), HasSubstr("line 1 of the template")));
  EXPECT_THAT(with_template("{{ messages[0].content.nothing.more }}"), HasSubstr("octet inspect"));
  EXPECT_THAT(with_template("{% if false %}x{% endif %}"),
              AllOf(HasSubstr("the chat template makes no text"), HasSubstr("octet inspect")));
  fs::remove(model() / "chat_template.jinja");
  write_bytes(model() / "tokenizer_config.json",
              R"({"chat_template": [{"name": "rag", "template": "x"}]})");
  EXPECT_THAT(fails(words, 2).err, HasSubstr("no chat template is named 'default'"));
}

TEST_F(BadText, AMessageThatIsNotUtf8) {
  write(sound());
  EXPECT_THAT(fails({"chat", model().string()}, 2, {.input = "a\xFF b\n"}).err,
              AllOf(HasSubstr("the message: the text is not UTF-8: byte 1"), HasSubstr("iconv")));
}

TEST_F(BadText, DamagedWeightsAreInspectsToName) {
  TinyCheckpoint checkpoint = sound(tiny_plain());
  const TinyModel sizes = small_model(tiny_plain());
  const std::vector<float> bad(static_cast<size_t>(sizes.hidden), HUGE_VALF);
  checkpoint.remove("model.norm.weight");
  checkpoint.add_values("model.norm.weight", DType::F32, Shape{sizes.hidden}, bad);
  write(checkpoint);
  EXPECT_THAT(fails({"run", model().string(), "-p", "bread"}, 4).err, HasSubstr("octet inspect"));
}

}  // namespace
}  // namespace octet
