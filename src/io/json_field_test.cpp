#include "io/json_field.h"

#include <nlohmann/json.hpp>

#include "io/json_file.h"
#include "testing/broken_files.h"

namespace octet {
namespace {

using nlohmann::json;
using testing::HasSubstr;

TEST(JsonField, NullEqualsAbsent) {
  const json value{{"a", nullptr}, {"b", 1}};
  const JsonField field(value, "root");
  EXPECT_FALSE(field.find("a"));
  EXPECT_FALSE(field.find("c"));
  EXPECT_EQ(field.at("b").integer(), 1);
  EXPECT_EQ(field.at("b").path(), "root.b");
  EXPECT_EQ(bad_input([&] { field.at("a"); }), "root has no \"a\"");
}

TEST(JsonField, IntegersAreWholeNumbersOnly) {
  for (const char* text : {"1.0", "\"1\"", "true", "18446744073709551615", "[1]"}) {
    const json value = json::parse(text);
    EXPECT_THAT(bad_input([&] { JsonField(value, "x").integer(); }),
                AllOf(HasSubstr("x is"), HasSubstr("whole number")))
        << text;
  }
}

TEST(JsonField, MessagesShowTheValueShortAndPrintable) {
  const json value = std::string(500, 'v');
  EXPECT_LT(bad_input([&] { JsonField(value, "x").integer(); }).size(), 200U);
  const json broken = "\xff\xfe";
  EXPECT_THAT(bad_input([&] { JsonField(broken, "x").integer(); }), HasSubstr("x is"));
}

class JsonFileTest : public testing::Test {
 protected:
  std::string refusal(const std::string& text) {
    write_bytes(folder_.path() / "config.json", text);
    return bad_input([&] { read_json_object(folder_.path() / "config.json"); });
  }
  TinyFolder folder_;
};

TEST_F(JsonFileTest, ReadsAnObject) {
  write_bytes(folder_.path() / "config.json", "{\"a\": 1}");
  EXPECT_EQ(read_json_object(folder_.path() / "config.json").at("a"), 1);
}

TEST_F(JsonFileTest, RefusesWhatIsNotAnObject) {
  EXPECT_THAT(refusal("{\"a\": }"),
              AllOf(HasSubstr("config.json is not JSON"), HasSubstr("line 1")));
  EXPECT_THAT(refusal(""), HasSubstr("is not JSON"));
  EXPECT_THAT(refusal("[1]"), HasSubstr("holds a JSON array, expected an object"));
  EXPECT_THAT(refusal("{\"a\": \"\xff\"}"), HasSubstr("is not JSON"));
}

TEST_F(JsonFileTest, RefusesDeepNesting) {
  EXPECT_THAT(refusal("{\"a\": " + std::string(100'000, '[')), HasSubstr("nested over 64 deep"));
  std::string deep;
  for (int i = 0; i < 100; ++i) deep += "{\"a\":";
  EXPECT_THAT(refusal(deep + "1" + std::string(100, '}')), HasSubstr("nested over 64 deep"));
}

TEST_F(JsonFileTest, AnAbsentFileIsBadInput) {
  EXPECT_THAT(bad_input([&] { read_json_object(folder_.path() / "none.json"); }),
              HasSubstr("none.json"));
}

}  // namespace
}  // namespace octet
