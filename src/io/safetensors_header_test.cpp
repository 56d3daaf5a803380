#include "io/safetensors_header.h"

#include "testing/broken_files.h"

namespace octet {
namespace {

using testing::HasSubstr;

class SafetensorsHeaderTest : public testing::Test {
 protected:
  std::filesystem::path file() const { return folder_.path() / "a.safetensors"; }

  SafetensorsHeader read(const std::string& bytes, bool may_be_cut = false) {
    write_bytes(file(), bytes);
    HeaderReader reader(arena_);
    return reader.read(file(), may_be_cut);
  }
  // The message for a header with `data_bytes` of data behind it.
  std::string refusal(const std::string& header, size_t data_bytes = 0) {
    return bad_input([&] { read(safetensors_bytes(header, data_bytes)); });
  }

  TinyFolder folder_;
  NameArena arena_;
};

TEST_F(SafetensorsHeaderTest, ReadsNamesTypesShapesAndOffsets) {
  const std::string header = "{\"__metadata__\":{\"format\":\"pt\"}," +
                             header_entry("b", "F8_E4M3", "[2,3]", "[8,14]") + "," +
                             header_entry("a", "F32", "[2]", "[0,8]") + "}   ";
  const SafetensorsHeader read_header = read(safetensors_bytes(header, 14));
  ASSERT_EQ(read_header.tensors.size(), 2U);  // D07: any order of entries, sorted by offset
  EXPECT_EQ(read_header.tensors[0].name, "a");
  EXPECT_EQ(read_header.tensors[0].dtype, DType::F32);
  EXPECT_EQ(read_header.tensors[1].name, "b");
  EXPECT_EQ(read_header.tensors[1].dtype, DType::F8E4M3);
  EXPECT_EQ(read_header.tensors[1].shape, (Shape{2, 3}));
  EXPECT_EQ(read_header.tensors[1].begin, 8U);
  EXPECT_EQ(read_header.header_bytes, 8 + header.size());
  EXPECT_EQ(read_header.data_bytes, 14U);
}

TEST_F(SafetensorsHeaderTest, D17KnowsEveryEightBitType) {
  const std::string header = "{" + header_entry("a", "F8_E4M3", "[1]", "[0,1]") + "," +
                             header_entry("b", "F8_E5M2", "[1]", "[1,2]") + "," +
                             header_entry("c", "F8_E8M0", "[1]", "[2,3]") + "," +
                             header_entry("d", "I8", "[1]", "[3,4]") + "," +
                             header_entry("e", "U8", "[1]", "[4,5]") + "}";
  const SafetensorsHeader read_header = read(safetensors_bytes(header, 5));
  EXPECT_EQ(read_header.tensors[1].dtype, DType::F8E5M2);
  EXPECT_EQ(read_header.tensors[2].dtype, DType::F8E8M0);
}

TEST_F(SafetensorsHeaderTest, ScalarsAndEmptyTensorsAreFine) {
  const std::string header = "{" + header_entry("s", "BF16", "[]", "[0,2]") + "," +
                             header_entry("z", "BF16", "[0,7]", "[2,2]") + "}";
  const SafetensorsHeader read_header = read(safetensors_bytes(header, 2));
  EXPECT_EQ(read_header.tensors[0].shape.rank(), 0);
  EXPECT_EQ(read_header.tensors[1].shape.elements(), 0);
}

TEST_F(SafetensorsHeaderTest, AnEmptyHeaderHoldsNothing) {
  EXPECT_TRUE(read(safetensors_bytes("{}", 0)).tensors.empty());
}

TEST_F(SafetensorsHeaderTest, EscapedNamesAreDecoded) {
  const std::string header = R"({"a\u002eb":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})";
  EXPECT_EQ(read(safetensors_bytes(header, 1)).tensors[0].name, "a.b");
}

TEST_F(SafetensorsHeaderTest, D05TruncatedFilesStateBothSizes) {
  const std::string whole =
      safetensors_bytes("{" + header_entry("a", "U8", "[2000]", "[0,2000]") + "}", 2000);
  const auto cut = [&](size_t bytes) { return bad_input([&] { read(whole.substr(0, bytes)); }); };
  EXPECT_THAT(cut(0), HasSubstr("has 0 bytes, expected at least 8"));
  EXPECT_THAT(cut(4), HasSubstr("has 4 bytes, expected at least 8"));
  EXPECT_THAT(cut(20), HasSubstr("is truncated: the header needs"));
  EXPECT_THAT(cut(whole.size() - 1000),
              AllOf(HasSubstr("a.safetensors is truncated"),
                    HasSubstr(fmt::format("expected {} bytes, found {}", whole.size(),
                                          whole.size() - 1000))));
}

TEST_F(SafetensorsHeaderTest, AFileCutAfterTheHeaderIsAdmittedWhenAsked) {
  const std::string whole =
      safetensors_bytes("{" + header_entry("a", "U8", "[2000]", "[0,2000]") + "}", 2000);
  EXPECT_EQ(read(whole.substr(0, whole.size() - 2000), true).data_bytes, 2000U);
  EXPECT_EQ(read(whole.substr(0, whole.size() - 1), true).data_bytes, 2000U);
  EXPECT_THAT(bad_input([&] { read(whole.substr(0, 30), true); }), HasSubstr("is truncated"));
}

TEST_F(SafetensorsHeaderTest, AbsurdHeaderLengthsAreRefusedBeforeReadingThem) {
  const auto with_length = [&](uint64_t length) {
    std::string bytes(8, '\0');
    std::memcpy(bytes.data(), &length, 8);
    return bad_input([&] { read(bytes + "{}"); });
  };
  EXPECT_THAT(with_length(~uint64_t{0}), HasSubstr("expected at most 100000000"));
  EXPECT_THAT(with_length(uint64_t{1} << 63), HasSubstr("expected at most 100000000"));
  EXPECT_THAT(with_length(100'000'001), HasSubstr("expected at most 100000000"));
  EXPECT_THAT(with_length(90'000'000), HasSubstr("is truncated"));
  EXPECT_THAT(with_length(0), HasSubstr("header of 0 bytes"));
  EXPECT_THAT(with_length(1), HasSubstr("header of 1 byte,"));
}

TEST_F(SafetensorsHeaderTest, HeadersThatAreNotJsonObjectsAreRefused) {
  EXPECT_THAT(refusal("{\"a\":"), HasSubstr("is not JSON"));
  EXPECT_THAT(refusal("[1,2,3]"), HasSubstr("not a JSON object"));
  EXPECT_THAT(refusal("12"), HasSubstr("not a JSON object"));
  EXPECT_THAT(refusal("<html><head>"), HasSubstr("is not JSON"));
  EXPECT_THAT(refusal(std::string("{\"\xff\":1}")), HasSubstr("is not JSON"));
  EXPECT_THAT(refusal(std::string(5000, '[')), HasSubstr("is not JSON"));
  EXPECT_THAT(refusal("{\"a\":[1]}"), HasSubstr("tensor \"a\": is [1], expected an object"));
  EXPECT_THAT(refusal("{\"__metadata__\":7}"), HasSubstr("__metadata__ is 7"));
}

TEST_F(SafetensorsHeaderTest, D06DuplicateNamesAreNamed) {
  const std::string header = "{" + header_entry("model.norm.weight", "U8", "[4]", "[0,4]") + "," +
                             header_entry("model.norm.weight", "U8", "[4]", "[4,8]") + "}";
  EXPECT_THAT(refusal(header, 8), HasSubstr("duplicate tensor name \"model.norm.weight\""));
}

TEST_F(SafetensorsHeaderTest, D07OverlapsAreRefusedWithBothNames) {
  const std::string header = "{" + header_entry("a", "U8", "[32]", "[0,32]") + "," +
                             header_entry("b", "U8", "[32]", "[16,48]") + "}";
  EXPECT_THAT(refusal(header, 48), HasSubstr("tensors \"a\" and \"b\" overlap: [0, 32] and"));
}

TEST_F(SafetensorsHeaderTest, NamesWithLineFeedsAndEscapesStayInTheirLine) {
  const std::string a = R"(a\nb)";  // as JSON writes a line feed
  const std::string b = R"(\u001b[31m)";
  const std::string both = "{" + header_entry(a, "U8", "[32]", "[0,32]") + ",";
  EXPECT_THAT(refusal(both + header_entry(b, "U8", "[32]", "[16,48]") + "}", 48),
              HasSubstr(R"(tensors "a\x0ab" and "\x1b[31m" overlap)"));
  EXPECT_THAT(refusal(both + header_entry(b, "U8", "[32]", "[96,128]") + "}", 128),
              HasSubstr(R"(before tensor "\x1b[31m")"));
  EXPECT_THAT(refusal(both + header_entry(a, "U8", "[4]", "[32,36]") + "}", 36),
              HasSubstr(R"(duplicate tensor name "a\x0ab")"));
  EXPECT_THAT(refusal("{\"" + a + "\":[1]}"), HasSubstr(R"(tensor "a\x0ab": is [1])"));
}

TEST_F(SafetensorsHeaderTest, D07HolesAreRefusedWithTheirPlace) {
  const std::string header = "{" + header_entry("a", "U8", "[32]", "[0,32]") + "," +
                             header_entry("b", "U8", "[32]", "[96,128]") + "}";
  EXPECT_THAT(refusal(header, 128), HasSubstr("a hole of 64 bytes at data offset 32"));
  EXPECT_THAT(refusal("{" + header_entry("a", "U8", "[4]", "[4,8]") + "}", 8),
              HasSubstr("a hole of 4 bytes at data offset 0"));
}

TEST_F(SafetensorsHeaderTest, BytesAfterTheLastTensorAreRefused) {
  EXPECT_THAT(refusal("{" + header_entry("a", "U8", "[4]", "[0,4]") + "}", 9),
              HasSubstr("5 bytes after the last tensor"));
}

TEST_F(SafetensorsHeaderTest, D09UnknownTypesAreRefusedByName) {
  EXPECT_THAT(
      refusal("{" + header_entry("a", "F7", "[4]", "[9223372036854775808,9223372036854775812]") +
              "}"),
      HasSubstr("dtype \"F7\" is not one of F32, F16, BF16, F8_E4M3"));
  EXPECT_THAT(refusal("{\"a\":{\"dtype\":7,\"shape\":[],\"data_offsets\":[0,1]}}"),
              HasSubstr("dtype is 7, expected a string"));
}

TEST_F(SafetensorsHeaderTest, D09OffsetsThatWrapAreRefused) {
  EXPECT_THAT(
      refusal("{" +
              header_entry("a", "F8_E4M3", "[4]", "[9223372036854775808,9223372036854775812]") +
              "}"),
      HasSubstr("is not a range within 2^62 bytes"));
}

TEST_F(SafetensorsHeaderTest, D10BadOffsetsAreRefused) {
  const auto offsets = [&](const std::string& pair) {
    return refusal("{" + header_entry("a", "U8", "[4]", pair) + "}", 64);
  };
  EXPECT_THAT(offsets("[-32,0]"), HasSubstr("data_offsets is [-32,0], expected two whole numbers"));
  EXPECT_THAT(offsets("[64,48]"), HasSubstr("data_offsets [64, 48] is not a range"));
  EXPECT_THAT(offsets("[0]"), HasSubstr("expected two whole numbers"));
  EXPECT_THAT(offsets("[0,4,8]"), HasSubstr("expected two whole numbers"));
  EXPECT_THAT(offsets("[0.0,4.0]"), HasSubstr("expected two whole numbers"));
  EXPECT_THAT(offsets("[0,99999999999999999999]"), HasSubstr("is not JSON"));
  EXPECT_THAT(offsets("\"0,4\""), HasSubstr("expected two whole numbers"));
}

TEST_F(SafetensorsHeaderTest, D10ShapesThatDoNotFitTheirBytesAreRefused) {
  EXPECT_THAT(refusal("{" + header_entry("a", "F32", "[900,900]", "[0,8]") + "}", 8),
              HasSubstr("F32 [900, 900] needs 3240000 bytes, data_offsets [0, 8] hold 8"));
  EXPECT_THAT(refusal("{" + header_entry("a", "F32", "[8589934592,8589934592]", "[0,8]") + "}", 8),
              HasSubstr("needs over 2^62 bytes"));
  // 2^62 elements of 4 bytes are 0 modulo 2^64.
  EXPECT_THAT(refusal("{" + header_entry("a", "F32", "[4611686018427387904]", "[0,0]") + "}", 0),
              HasSubstr("needs over 2^62 bytes"));
}

TEST_F(SafetensorsHeaderTest, BadShapesAreRefused) {
  const auto shape = [&](const std::string& text) {
    return refusal("{" + header_entry("a", "U8", text, "[0,4]") + "}", 4);
  };
  EXPECT_THAT(shape("[-4]"), HasSubstr("not a whole number from 0"));
  EXPECT_THAT(shape("[4.0]"), HasSubstr("not a whole number from 0"));
  EXPECT_THAT(shape("[\"4\"]"), HasSubstr("not a whole number from 0"));
  EXPECT_THAT(shape("4"), HasSubstr("shape is 4, expected an array"));
  EXPECT_THAT(shape("[1,1,1,1,1,1,4]"), HasSubstr("shape has 7 extents, expected at most 6"));
}

TEST_F(SafetensorsHeaderTest, FieldsMustBeThereOnceAndKnown) {
  EXPECT_THAT(refusal(R"({"a":{"shape":[],"data_offsets":[0,1]}})", 1), HasSubstr("has no dtype"));
  EXPECT_THAT(refusal(R"({"a":{"dtype":"U8","data_offsets":[0,1]}})", 1),
              HasSubstr("has no shape"));
  EXPECT_THAT(refusal(R"({"a":{"dtype":"U8","shape":[]}})", 1), HasSubstr("has no data_offsets"));
  EXPECT_THAT(refusal(R"({"a":{"dtype":"U8","dtype":"I8","shape":[],"data_offsets":[0,1]}})", 1),
              HasSubstr("field \"dtype\" is given twice"));
  EXPECT_THAT(refusal(R"({"a":{"dtype":"U8","shape":[],"data_offsets":[0,1],"x":1}})", 1),
              HasSubstr("unknown field \"x\""));
}

TEST_F(SafetensorsHeaderTest, EveryPrefixOfAFileIsRefusedWithoutACrash) {
  const std::string whole = safetensors_bytes("{" + header_entry("a", "U8", "[3]", "[0,3]") + "," +
                                                  header_entry("b", "F16", "[2]", "[3,7]") + "}",
                                              7);
  for (size_t bytes = 0; bytes < whole.size(); ++bytes) {
    bad_input([&] { read(whole.substr(0, bytes)); });
  }
}

TEST_F(SafetensorsHeaderTest, EveryChangedByteIsReadOrRefusedWithoutACrash) {
  const std::string whole = safetensors_bytes("{" + header_entry("a", "U8", "[3]", "[0,3]") + "," +
                                                  header_entry("b", "F16", "[2]", "[3,7]") + "}",
                                              7);
  int refused = 0;
  for (size_t i = 0; i < whole.size() - 7; ++i) {
    for (const char c : {'\0', '"', '9', '-', '}', '\xff'}) {
      std::string changed = whole;
      changed[i] = c;
      try {
        read(changed);
      } catch (const Error& e) {
        EXPECT_EQ(e.code(), Code::BadInput) << e.message();
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 300);
}

TEST(NameArena, KeepsNamesWhileItGrows) {
  NameArena arena;
  const std::string_view first = arena.intern("first");
  for (int i = 0; i < 10'000; ++i) arena.intern(fmt::format("model.layers.{}.mlp", i));
  const std::string long_name(200'000, 'n');
  EXPECT_EQ(arena.intern(long_name), long_name);
  EXPECT_EQ(arena.intern("after"), "after");
  EXPECT_EQ(first, "first");
  EXPECT_EQ(arena.intern(""), "");
}

}  // namespace
}  // namespace octet
