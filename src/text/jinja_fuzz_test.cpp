// Random mutations of working templates: whatever a template says, compiling and rendering it gives
// text or one clear error.
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "text/jinja_print.h"
#include "text/jinja_template.h"

namespace octet::jinja {
namespace {

using Json = nlohmann::ordered_json;

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

struct Corpus {
  Value variables;
  std::vector<std::string> sources;
};

Corpus read_corpus() {
  const std::filesystem::path folder = "testing/data/templates";
  const Json goldens = Json::parse(read(folder / "goldens.json"));
  Budget budget{Limits{}};
  Corpus corpus{from_json(goldens["variables"], "", budget), {}};
  for (const Json& golden : goldens["snippets"]) {
    corpus.sources.push_back(golden["source"].get<std::string>());
  }
  const size_t snippets = corpus.sources.size();
  for (const char* style : {"llama", "qwen", "mistral", "gemma", "chatml", "macro"}) {
    const std::string source = read(folder / (std::string(style) + "_style.jinja"));
    // As many as there are snippets in all, so that both get mutated.
    corpus.sources.insert(corpus.sources.end(), snippets / 24, source);
  }
  return corpus;
}

constexpr std::array<std::string_view, 64> kPieces = {"{%",
                                                      "%}",
                                                      "{{",
                                                      "}}",
                                                      "{#",
                                                      "#}",
                                                      "-",
                                                      "+",
                                                      "{%- ",
                                                      " -%}",
                                                      "(",
                                                      ")",
                                                      "[",
                                                      "]",
                                                      "{",
                                                      "}",
                                                      ",",
                                                      ":",
                                                      "|",
                                                      ".",
                                                      "~",
                                                      "*",
                                                      "**",
                                                      "//",
                                                      "%",
                                                      "==",
                                                      "<",
                                                      "'",
                                                      "\"",
                                                      "\\",
                                                      " if ",
                                                      " else ",
                                                      " for ",
                                                      " in ",
                                                      " not ",
                                                      " is ",
                                                      " and ",
                                                      " or ",
                                                      "set ",
                                                      "endset",
                                                      "endfor",
                                                      "endif",
                                                      "macro ",
                                                      "endmacro",
                                                      "call ",
                                                      "raw",
                                                      "endraw",
                                                      "break",
                                                      "loop",
                                                      "messages",
                                                      "none",
                                                      "true",
                                                      "9223372036854775807",
                                                      "-1",
                                                      "0",
                                                      "1e308",
                                                      "\n",
                                                      "\t",
                                                      "\xC3\xA9",
                                                      "\xF0\x9F\x99\x82",
                                                      "\xFF",
                                                      "namespace()",
                                                      "|list",
                                                      "|tojson"};

std::string mutated(const Corpus& corpus, std::mt19937& random) {
  const auto below = [&random](size_t n) { return random() % n; };
  std::string source = corpus.sources[below(corpus.sources.size())];
  for (size_t edits = 1 + below(4); edits > 0; --edits) {
    const size_t at = below(source.size() + 1);
    const size_t length = std::min<size_t>(below(12), source.size() - at);
    switch (below(4)) {
      case 0:
        source.erase(at, length);
        break;
      case 1:
        source.insert(at, kPieces[below(kPieces.size())]);
        break;
      case 2:
        source.replace(at, length, kPieces[below(kPieces.size())]);
        break;
      default: {
        const std::string& other = corpus.sources[below(corpus.sources.size())];
        source.insert(at, other.substr(below(other.size() + 1), below(60)));
      }
    }
  }
  return source;
}

TEST(JinjaFuzz, MutatedTemplatesRenderOrFailWithOneClearError) {
  const Corpus corpus = read_corpus();
  const Limits limits{
      .depth = 100, .steps = 20'000, .text_bytes = 1u << 18, .memory_bytes = 1u << 23};
  const auto clock = [] { return std::tm{}; };
  std::mt19937 random(20240706);
  size_t rendered = 0;
  size_t refused = 0;
  for (int i = 0; i < 4000; ++i) {
    const std::string source = mutated(corpus, random);
    try {
      Template(source, "fuzz").render(corpus.variables, clock, limits);
      ++rendered;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::BadInput) << source << "\n" << error.message();
      EXPECT_FALSE(error.message().empty()) << source;
      ++refused;
    }
  }
  // Both happen often, or the mutations test too little.
  EXPECT_GT(rendered, 300u);
  EXPECT_GT(refused, 1000u);
}

}  // namespace
}  // namespace octet::jinja
