#include "cli/flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/flags_test_tables.h"

namespace octet {
namespace {

using test_tables::run;
using test_tables::serve;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using Words = std::vector<std::string>;

ParsedArgs parsed(const CommandSpec& spec, const Words& words) {
  return parse(spec, words);
}

// Message and hint of the error that `words` cause.
std::string refusal(const CommandSpec& spec, const Words& words) {
  try {
    parse(spec, words);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::BadInput);
    return error.message() + " | " + error.hint();
  }
  return "nothing refused";
}

TEST(Flags, TakesTheVllmCommandLineOfOurMission) {
  const auto args = parsed(
      serve(), {"Qwen/Qwen3-32B-FP8-block", "--port", "8072", "--trust-remote-code",
                "--gpu-memory-util=0.9", "--max-num-batched-tokens=8192", "--max-model-len=6000",
                "--no-enable-prefix-caching", "--block-size", "64", "-tp=2"});
  EXPECT_EQ(args.argument("MODEL"), "Qwen/Qwen3-32B-FP8-block");
  EXPECT_EQ(args.integer("port"), 8072);
  EXPECT_TRUE(args.on("trust-remote-code"));
  EXPECT_EQ(args.number("gpu-memory-utilization"), 0.9);
  EXPECT_EQ(args.integer("max-num-batched-tokens"), 8192);
  EXPECT_EQ(args.integer("max-model-len"), 6000);
  EXPECT_FALSE(args.on("enable-prefix-caching"));
  EXPECT_EQ(args.integer("block-size"), 64);
  EXPECT_EQ(args.integer("tensor-parallel-size"), 2);
}

TEST(Flags, TakesShortLongDisguisedAndUnderscoredFlagsSideBySide) {
  const auto args =
      parsed(run(), {"-p", "-x", "-n", "5", "-tp", "2", "--max_model_len", "8k", "M"});
  EXPECT_EQ(args.text("prompt"), "-x");
  EXPECT_EQ(args.integer("max-tokens"), 5);
  EXPECT_EQ(args.integer("tensor-parallel-size"), 2);
  EXPECT_EQ(args.integer("max-model-len"), 8000);
  EXPECT_EQ(args.argument("MODEL"), "M");
}

struct Spelling {
  Words words;
  std::string flag, value;
};

void PrintTo(const Spelling& spelling, std::ostream* out) {
  *out << fmt::format("{} for --{}", fmt::join(spelling.words, " "), spelling.flag);
}

class FlagSpelling : public testing::TestWithParam<Spelling> {};

TEST_P(FlagSpelling, GivesTheValue) {
  Words words = GetParam().words;
  for (const bool model_first : {false, true}) {
    Words all = words;
    all.insert(model_first ? all.begin() : all.end(), "M");
    const auto args = parsed(run(), all);
    EXPECT_EQ(args.text(GetParam().flag), GetParam().value) << model_first;
    EXPECT_EQ(args.argument("MODEL"), "M");
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, FlagSpelling,
    testing::Values(Spelling{{"-p", "TEXT"}, "prompt", "TEXT"},
                    Spelling{{"-p", "-x"}, "prompt", "-x"}, Spelling{{"-p", "-5"}, "prompt", "-5"},
                    Spelling{{"-p", "--not-a-flag"}, "prompt", "--not-a-flag"},
                    Spelling{{"-p", "- a list item"}, "prompt", "- a list item"},
                    Spelling{{"-p", "--a_b="}, "prompt", "--a_b="},
                    Spelling{{"-p", "max_model_len"}, "prompt", "max_model_len"},
                    Spelling{{"-p", "--json is a flag"}, "prompt", "--json is a flag"},
                    Spelling{{"-p", ""}, "prompt", ""}, Spelling{{"-p", "-"}, "prompt", "-"},
                    Spelling{
                        {"-p", "\xe6\x97\xa5\xe6\x9c\xac"}, "prompt", "\xe6\x97\xa5\xe6\x9c\xac"},
                    Spelling{{"-p=TEXT"}, "prompt", "TEXT"},
                    Spelling{{"--prompt=a=b"}, "prompt", "a=b"},
                    Spelling{{"--prompt=--json"}, "prompt", "--json"},
                    Spelling{{"--prompt="}, "prompt", ""}, Spelling{{"-p="}, "prompt", ""}));

INSTANTIATE_TEST_SUITE_P(
    Numbers, FlagSpelling,
    testing::Values(
        Spelling{{"-n", "5"}, "max-tokens", "5"}, Spelling{{"-n5"}, "max-tokens", "5"},
        Spelling{{"-n=5"}, "max-tokens", "5"}, Spelling{{"--n-predict", "5"}, "max-tokens", "5"},
        Spelling{{"--n_predict=5"}, "max-tokens", "5"},
        Spelling{{"--max-t", "5"}, "max-tokens", "5"}, Spelling{{"--max_t=5"}, "max-tokens", "5"},
        Spelling{{"-n", "3", "-n", "5"}, "max-tokens", "5"},
        Spelling{{"-tp", "2"}, "tensor-parallel-size", "2"},
        Spelling{{"-tp=2"}, "tensor-parallel-size", "2"},
        Spelling{{"--tp", "2"}, "tensor-parallel-size", "2"},
        Spelling{{"--tensor-par", "2"}, "tensor-parallel-size", "2"},
        Spelling{{"--tensor_parallel_size=2"}, "tensor-parallel-size", "2"},
        Spelling{{"-jn", "5"}, "max-tokens", "5"}, Spelling{{"--top-k", "-1"}, "top-k", "-1"}));

TEST(Flags, EndsFlagsAtTwoDashes) {
  EXPECT_EQ(parsed(run(), {"-n", "5", "--", "--json"}).argument("MODEL"), "--json");
  EXPECT_FALSE(parsed(run(), {"--", "--json"}).on("json"));
}

TEST(Flags, ReadsSwitchesAndTheirNegation) {
  EXPECT_TRUE(parsed(run(), {"M", "--json"}).on("json"));
  EXPECT_TRUE(parsed(run(), {"M", "-j"}).on("json"));
  EXPECT_FALSE(parsed(run(), {"M", "--json", "--no-json"}).on("json"));
  EXPECT_FALSE(parsed(run(), {"M", "--json", "--no-js"}).on("json"));
  EXPECT_FALSE(parsed(run(), {"M"}).on("json"));
  EXPECT_TRUE(parsed(serve(), {"M"}).on("enable-prefix-caching"));
  EXPECT_FALSE(parsed(serve(), {"M", "--no_enable_prefix_caching"}).on("enable-prefix-caching"));
}

TEST(Flags, GivesDefaultsAndSaysWhetherAFlagWasGiven) {
  const auto args = parsed(run(), {"M"});
  EXPECT_EQ(args.integer("max-tokens"), 128);
  EXPECT_FALSE(args.has("max-tokens"));
  EXPECT_EQ(args.text("prompt"), std::nullopt);
  EXPECT_EQ(args.number("temperature"), std::nullopt);
  EXPECT_THAT(args.list("stop"), IsEmpty());
  EXPECT_TRUE(parsed(run(), {"M", "-n", "128"}).has("max-tokens"));
}

TEST(Flags, CollectsListsAndRepeatedTexts) {
  const auto args =
      parsed(run(), {"M", "--stop", "a,b", "--stop=", "--disable", "x,y", "--disable=z",
                     "--prompt-ids", "1,2, 3", "--prompt-ids= 4,\t5 "});
  EXPECT_THAT(args.list("stop"), ElementsAre("a,b", ""));
  EXPECT_THAT(args.list("disable"), ElementsAre("x", "y", "z"));
  EXPECT_THAT(args.integers("prompt-ids"), ElementsAre(1, 2, 3, 4, 5));
  EXPECT_THAT(parsed(run(), {"M", "--prompt-ids="}).integers("prompt-ids"), IsEmpty());
}

TEST(Flags, TakesAnOptionalValueOnlyWhenItCanBeOne) {
  EXPECT_EQ(parsed(run(), {"M", "--logprobs"}).integer("logprobs"), 1);
  EXPECT_EQ(parsed(run(), {"M", "--logprobs", "5"}).integer("logprobs"), 5);
  EXPECT_EQ(parsed(run(), {"M", "--logprobs=5"}).integer("logprobs"), 5);
  EXPECT_EQ(parsed(run(), {"M", "--logprobs", "--json"}).integer("logprobs"), 1);
  const auto args = parsed(run(), {"--logprobs", "M", "--color", "never"});
  EXPECT_EQ(args.integer("logprobs"), 1);
  EXPECT_EQ(args.argument("MODEL"), "M");
  EXPECT_EQ(args.text("color"), "never");
  EXPECT_EQ(parsed(run(), {"--color", "M"}).text("color"), "always");
}

TEST(Flags, TakesExtraWordsOfNumbers) {
  const auto args = parsed(serve(), {"M", "--max-model-len", "auto"});
  EXPECT_EQ(args.integer("max-model-len"), std::nullopt);
  EXPECT_EQ(args.text("max-model-len"), "auto");
}

TEST(Flags, LetsAFlagStandForAPositional) {
  EXPECT_EQ(parsed(serve(), {"--model", "M"}).argument("MODEL"), "M");
  EXPECT_EQ(parsed(serve(), {"-m", "M"}).argument("MODEL"), "M");
  EXPECT_THAT(refusal(serve(), {"-m", "M", "N"}), HasSubstr("got 'N' as well"));
}

TEST(Flags, AnswersHelpBeforeAnythingIsChecked) {
  EXPECT_EQ(parsed(run(), {"--help"}).help(), "");
  EXPECT_EQ(parsed(run(), {"-h"}).help(), "");
  EXPECT_EQ(parsed(run(), {"-n", "many", "--help"}).help(), "");
  EXPECT_EQ(parsed(run(), {"--help=top-p"}).help(), "top-p");
  EXPECT_EQ(parsed(run(), {"M"}).help(), std::nullopt);
}

TEST(Flags, RefusesUnknownFlagsWithTheNearestOne) {
  EXPECT_THAT(
      refusal(run(), {"M", "--max-modle-len", "8k"}),
      HasSubstr("'octet run' has no flag '--max-modle-len' | did you mean --max-model-len?"));
  EXPECT_THAT(refusal(run(), {"M", "--max_modl_len=8"}),
              HasSubstr("no flag '--max_modl_len' | did you mean --max-model-len?"));
  EXPECT_THAT(refusal(serve(), {"M", "--gpu-mem-util=1"}),
              HasSubstr("did you mean --gpu-memory-utilization?"));
  EXPECT_THAT(refusal(serve(), {"M", "--no-enable-prefix-cachign"}),
              HasSubstr("did you mean --no-enable-prefix-caching?"));
  const std::string strange = refusal(run(), {"M", "--zzzzzz"});
  EXPECT_THAT(strange, HasSubstr("no flag '--zzzzzz'"));
  EXPECT_THAT(strange, testing::Not(HasSubstr("did you mean")));
  EXPECT_THAT(refusal(run(), {"M", "-x"}), HasSubstr("no flag '-x'"));
  EXPECT_THAT(refusal(run(), {"M", "-3"}), HasSubstr("no flag '-3'"));
  EXPECT_THAT(refusal(run(), {"M", "---json"}), HasSubstr("no flag '---json'"));
}

TEST(Flags, RefusesAmbiguousPrefixesWithTheCandidates) {
  EXPECT_THAT(refusal(run(), {"M", "--top", "1"}),
              HasSubstr("'--top' of 'octet run' is ambiguous: it begins --top-k, --top-p"));
  EXPECT_THAT(refusal(run(), {"M", "--max_", "1"}), HasSubstr("--max-tokens, --max-model-len"));
}

TEST(Flags, RefusesMissingValues) {
  EXPECT_THAT(refusal(run(), {"M", "-p"}), HasSubstr("--prompt takes a value, got none"));
  EXPECT_THAT(refusal(run(), {"M", "--max-t"}), HasSubstr("--max-tokens takes a value, got none"));
  EXPECT_THAT(refusal(run(), {"M", "-p", "--json"}),
              HasSubstr("got the flag '--json' in its place | if '--json' is the value, write "
                        "--prompt=--json"));
  EXPECT_THAT(refusal(run(), {"M", "--temperature", "--json"}), HasSubstr("the flag '--json'"));
  EXPECT_THAT(refusal(run(), {"M", "-p", "--"}), HasSubstr("the flag '--'"));
  EXPECT_THAT(refusal(run(), {"M", "-p", "-tp"}), HasSubstr("the flag '-tp'"));
  EXPECT_THAT(refusal(run(), {"M", "-p", "-n"}), HasSubstr("is written --prompt=VALUE"));
}

TEST(Flags, RefusesValuesOfSwitches) {
  EXPECT_THAT(refusal(run(), {"M", "--json=yes"}),
              HasSubstr("--json takes no value, got one | write --json, or --no-json"));
  EXPECT_THAT(refusal(run(), {"M", "--json="}), HasSubstr("--json takes no value"));
}

TEST(Flags, TakesEveryUnsignedNumberOf64Bits) {
  const auto seed = [](const char* text) {
    return parsed(run(), {"M", "--seed", text}).unsigned_integer("seed");
  };
  EXPECT_EQ(seed("0"), 0U);
  EXPECT_EQ(seed("+18446744073709551615"), UINT64_MAX);
  EXPECT_EQ(seed("9223372036854775808"), uint64_t{1} << 63);
  EXPECT_EQ(parsed(run(), {"M"}).unsigned_integer("seed"), 7U);
  for (const char* text : {"18446744073709551616", "-1", "1.5", "x", "", "1e3"}) {
    EXPECT_THAT(refusal(run(), {"M", "--seed", text}),
                HasSubstr(fmt::format("--seed takes a whole number from 0 to 18446744073709551615, "
                                      "got '{}'",
                                      text)));
  }
}

TEST(Flags, SaysTheRangeThatNumbersBeyond64BitsAreOutOf) {
  const std::string huge = "9223372036854775808";
  EXPECT_THAT(refusal(run(), {"M", "-n", huge}),
              HasSubstr("--max-tokens takes a whole number from 0 to 9223372036854775807, got"));
  EXPECT_THAT(refusal(serve(), {"M", "--port", huge}),
              HasSubstr("--port takes a whole number from 0 to 65535, got"));
  EXPECT_THAT(refusal(run(), {"M", "--top-k", huge}),
              HasSubstr("from -9223372036854775808 to 9223372036854775807, got"));
  EXPECT_THAT(refusal(serve(), {"M", "--max-model-len", "99999999T"}),
              HasSubstr("--max-model-len takes a whole number from 1 to 9223372036854775807, got"));
}

TEST(Flags, CountsArgumentsInPlainEnglish) {
  EXPECT_THAT(refusal(run(), {"M", "N"}), HasSubstr("'octet run' takes 1 argument, got 'N'"));
}

TEST(Flags, RefusesBadValuesQuotingThem) {
  EXPECT_THAT(refusal(run(), {"M", "-n", "five"}),
              HasSubstr("--max-tokens takes a whole number, got 'five'"));
  EXPECT_THAT(refusal(run(), {"M", "-n", "-5"}),
              HasSubstr("--max-tokens takes a number of at least 0, got '-5'"));
  EXPECT_THAT(refusal(run(), {"M", "--top-p", "1.5"}),
              HasSubstr("--top-p takes a number from 0 to 1, got '1.5'"));
  EXPECT_THAT(refusal(run(), {"M", "--temperature", "nan"}),
              HasSubstr("takes a number, got 'nan'"));
  EXPECT_THAT(refusal(run(), {"M", "--temperature", "1,5"}), HasSubstr("got '1,5'"));
  EXPECT_THAT(refusal(run(), {"M", "--prefer", "w8a4"}),
              HasSubstr("--prefer takes one of w8a8, w8a16, got 'w8a4' | did you mean w8a8?"));
  EXPECT_THAT(refusal(run(), {"M", "--prompt-ids", "1,,2"}), HasSubstr("got '1,,2'"));
  EXPECT_THAT(refusal(run(), {"M", "--prompt-ids", "1,x"}),
              HasSubstr("--prompt-ids, item 2, takes a whole number, got 'x'"));
  for (const char* ids : {"1 2", "1, 2 3", "1,2,", "1, ,2", "1\n2"}) {
    EXPECT_THAT(refusal(run(), {"M", "--prompt-ids", ids}),
                HasSubstr(fmt::format("--prompt-ids takes numbers between commas, got '{}'", ids)));
  }
  EXPECT_THAT(refusal(run(), {"M", "--prompt-ids=-1"}), HasSubstr("of at least 0, got '-1'"));
  EXPECT_THAT(refusal(run(), {"M", "--disable", "a,"}), HasSubstr("got 'a,'"));
  EXPECT_THAT(refusal(run(), {"M", "--logprobs=x"}), HasSubstr("got 'x'"));
  EXPECT_THAT(refusal(run(), {"M", "--logprobs="}), HasSubstr("got ''"));
  EXPECT_THAT(refusal(serve(), {"M", "--max-model-len", "0"}), HasSubstr("at least 1, got '0'"));
}

TEST(Flags, RefusesMissingAndExtraPositionals) {
  EXPECT_THAT(refusal(run(), {"-n", "5"}), HasSubstr("'octet run' needs MODEL: The checkpoint"));
  EXPECT_THAT(refusal(run(), {"M", "-p", "Hello", "world"}), HasSubstr("got 'world' as well"));
}

TEST(Flags, GivesAllWordsOfARepeatedPositional) {
  const CommandSpec spec{
      .name = "x",
      .summary = "s",
      .positionals = {{.name = "IN", .help = "h"},
                      {.name = "MORE", .help = "h", .required = false, .repeated = true}}};
  EXPECT_THAT(parsed(spec, {"a", "b", "c"}).arguments("MORE"), ElementsAre("b", "c"));
  EXPECT_THAT(parsed(spec, {"a"}).arguments("MORE"), IsEmpty());
  EXPECT_EQ(parsed(spec, {"a"}).argument("MORE"), std::nullopt);
}

TEST(Flags, RefusesOtherWordsThanTheChoicesOfAPositional) {
  const CommandSpec spec{
      .name = "completion",
      .summary = "s",
      .positionals = {{.name = "shell", .help = "h", .choices = {"bash", "zsh", "fish"}}}};
  EXPECT_EQ(parsed(spec, {"zsh"}).argument("shell"), "zsh");
  EXPECT_THAT(
      refusal(spec, {"bsh"}),
      HasSubstr(
          "SHELL of 'octet completion' is one of bash, zsh, fish, got 'bsh' | did you mean bash?"));
}

TEST(Flags, FindsCommandsAndSuggestsThem) {
  const ProgramSpec program{.name = "octet", .commands = {&run(), &serve()}};
  EXPECT_EQ(&find_command(program, "serve"), &serve());
  try {
    find_command(program, "sevre");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::BadInput);
    EXPECT_EQ(error.message(), "octet has no command 'sevre'");
    EXPECT_EQ(error.hint(), "did you mean 'serve'? 'octet --help' lists the commands");
  }
}

TEST(Flags, AskingForANameOutsideTheTableIsABug) {
  const auto args = parsed(run(), {"M"});
  for (const auto& ask : {+[](const ParsedArgs& a) { static_cast<void>(a.text("nope")); },
                          +[](const ParsedArgs& a) { static_cast<void>(a.on("prompt")); },
                          +[](const ParsedArgs& a) { static_cast<void>(a.integer("json")); },
                          +[](const ParsedArgs& a) { static_cast<void>(a.argument("OUT")); }}) {
    try {
      ask(args);
      FAIL() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::Bug);
    }
  }
}

TEST(Flags, FindsNothingWrongWithSoundTables) {
  EXPECT_THAT(spec_problems(serve()), IsEmpty());
  EXPECT_THAT(spec_problems(run()), IsEmpty());
}

TEST(Flags, NamesWhatIsWrongWithATable) {
  const CommandSpec spec{
      .name = "x",
      .summary = "s",
      .positionals = {{.name = "A", .help = "h", .repeated = true}, {.name = "B", .flag = "none"}},
      .flags = {{.name = "port", .kind = FlagKind::Integer, .help = "h.", .default_value = "many"},
                {.name = "port", .help = "h"},
                {.name = "Bad_Name", .letter = 'h', .help = "h"},
                {.name = "silent"},
                {.name = "s-w", .metavar = "X", .help = "h", .default_value = "true"}}};
  const std::string all = fmt::format("{}", fmt::join(spec_problems(spec), "\n"));
  for (const char* part :
       {"--port is used twice", "-h is used twice", "'Bad_Name' is not lower case",
        "--silent: has no help", "--port: its help ends with a full stop", "got 'many'",
        "A is repeated but not the last", "B has no help", "unknown flag --none",
        "--s-w: a switch takes no value", "the default of a switch is on or off, not 'true'"}) {
    EXPECT_THAT(all, HasSubstr(part));
  }
}

TEST(Flags, JoinsSharedPartsInOrder) {
  const auto all = concat({run().flags, {{.name = "extra", .help = "h"}}});
  ASSERT_EQ(all.size(), run().flags.size() + 1);
  EXPECT_EQ(all.back().name, "extra");
}

TEST(FlagNumbers, ReadsSizesAsVllmDoes) {
  EXPECT_EQ(parse_size("8192", "x"), 8192);
  EXPECT_EQ(parse_size("8k", "x"), 8000);
  EXPECT_EQ(parse_size("8K", "x"), 8192);
  EXPECT_EQ(parse_size("25.6k", "x"), 25600);
  EXPECT_EQ(parse_size("1.5m", "x"), 1500000);
  EXPECT_EQ(parse_size("2M", "x"), 2097152);
  EXPECT_EQ(parse_size("2Mi", "x"), 2097152);
  EXPECT_EQ(parse_size("8GiB", "x"), int64_t{8} << 30);
  EXPECT_EQ(parse_size("1g", "x"), 1000000000);
  EXPECT_EQ(parse_size("2T", "x"), int64_t{2} << 40);
  EXPECT_EQ(parse_size("-1", "x"), -1);
  EXPECT_EQ(parse_size("+7", "x"), 7);
  EXPECT_EQ(parse_size("9223372036854775807", "x"), INT64_MAX);
}

TEST(FlagNumbers, RefusesOtherSizesQuotingThem) {
  for (const char* text : {"",
                           "k",
                           "K",
                           "iB",
                           "8 k",
                           "8kb",
                           "8GB",
                           "8e3",
                           "0x10",
                           "1.5",
                           "1.5K",
                           "1.0001k",
                           "1.5.5k",
                           "--1",
                           "+-1",
                           "1-",
                           "8kk",
                           "nan",
                           ".k",
                           "-k",
                           "9223372036854775808",
                           "9000000T",
                           "99999999999999.5t"}) {
    try {
      parse_size(text, "--len");
      ADD_FAILURE() << "took '" << text << "'";
    } catch (const Error& error) {
      EXPECT_THAT(error.message(), HasSubstr(fmt::format("--len takes ")));
      EXPECT_THAT(error.message(), HasSubstr(fmt::format("got '{}'", text)));
    }
  }
}

TEST(FlagNumbers, ReadsAndRefusesPlainNumbers) {
  EXPECT_EQ(parse_integer("-42", "x"), -42);
  EXPECT_EQ(parse_integer("+42", "x"), 42);
  EXPECT_EQ(parse_number("1e-3", "x"), 1e-3);
  EXPECT_EQ(parse_number(".5", "x"), 0.5);
  for (const char* text : {"", "5.0", "5 ", " 5", "0x5", "9223372036854775808", "--5"}) {
    EXPECT_THROW(parse_integer(text, "x"), Error) << text;
  }
  for (const char* text : {"", "inf", "nan", "1e999", "1.5x", "0x1p3"}) {
    EXPECT_THROW(parse_number(text, "x"), Error) << text;
  }
}

TEST(FlagNearest, FindsTyposAndNothingFar) {
  const std::vector<std::string_view> words{"plan", "run", "chat", "quantize", "perplexity"};
  EXPECT_EQ(nearest("quantise", words), "quantize");
  EXPECT_EQ(nearest("rnu", words), "run");
  EXPECT_EQ(nearest("perplxity", words), "perplexity");
  EXPECT_EQ(nearest("serve", words), std::nullopt);
  EXPECT_EQ(nearest("", words), std::nullopt);
}

}  // namespace
}  // namespace octet
