// The committed results of Hugging Face tokenizers (tools/golden_tokenizers.py), text by text.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "text/detokenizer.h"
#include "text/tokenizer.h"

namespace octet {
namespace {

using nlohmann::json;

const std::filesystem::path kData = "testing/data/tokenizers";

json read_json(const std::filesystem::path& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file.good()) << path;
  return json::parse(file);
}

std::vector<std::string> kinds() {
  std::vector<std::string> names;
  std::error_code none;  // no folder: no kinds, which gtest reports
  for (const auto& entry : std::filesystem::directory_iterator(kData, none)) {
    if (entry.is_directory()) names.push_back(entry.path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

class TokenizerGolden : public testing::TestWithParam<std::string> {
 protected:
  Tokenizer tokenizer_ = Tokenizer::load(kData / GetParam());
  json golden_ = read_json(kData / GetParam() / "golden.json");
  std::vector<std::string> texts_ = read_json(kData / "texts.json");
};

using Ids = std::vector<int32_t>;

TEST_P(TokenizerGolden, EncodesAsTheReference) {
  const json& cases = golden_["cases"];
  ASSERT_EQ(cases.size(), texts_.size());
  ASSERT_GE(texts_.size(), 100U);
  for (size_t i = 0; i < texts_.size(); ++i) {
    const Ids expected = cases[i]["ids"];
    EXPECT_EQ(tokenizer_.encode(texts_[i]), expected) << "text " << i << ": " << json(texts_[i]);
    EXPECT_EQ(tokenizer_.encode(texts_[i], false), cases[i].value("plain", expected))
        << "text " << i;
  }
}

TEST_P(TokenizerGolden, DecodesAsTheReference) {
  const json& cases = golden_["cases"];
  for (size_t i = 0; i < texts_.size(); ++i) {
    const Ids ids = cases[i]["ids"];
    EXPECT_EQ(tokenizer_.decode(cases[i].value("plain", ids), false),
              cases[i].value("decoded", texts_[i]))
        << i;
    EXPECT_EQ(tokenizer_.decode(ids, true), cases[i].value("skipped", texts_[i])) << "text " << i;
  }
  ASSERT_FALSE(golden_["streams"].empty());
  for (const json& stream : golden_["streams"]) {
    EXPECT_EQ(tokenizer_.decode(stream["ids"].get<Ids>(), false), stream["decoded"])
        << stream["ids"];
    EXPECT_EQ(tokenizer_.decode(stream["ids"].get<Ids>(), true), stream["skipped"])
        << stream["ids"];
  }
}

TEST_P(TokenizerGolden, StreamsWholeCharactersThatAddUpToTheDecodedText) {
  for (const char* list : {"cases", "streams"}) {
    for (const json& item : golden_[list]) {
      const Ids ids = item["ids"];
      for (const bool skip : {false, true}) {
        Detokenizer detokenizer(tokenizer_, skip);
        std::string text;
        for (const int32_t id : ids) {
          const std::string piece = detokenizer.push(id);
          EXPECT_FALSE(find_invalid_utf8(piece)) << json(ids) << " half a character at id " << id;
          text += piece;
        }
        text += detokenizer.flush();
        EXPECT_EQ(text, tokenizer_.decode(ids, skip)) << json(ids);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, TokenizerGolden, testing::ValuesIn(kinds()),
                         [](const auto& kind) { return kind.param; });

}  // namespace
}  // namespace octet
