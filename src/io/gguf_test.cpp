#include "io/gguf.h"

#include <cstring>

#include "testing/broken_files.h"
#include "testing/tiny_gguf.h"

namespace octet {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::span<const std::byte> bytes_of(const std::string& file) {
  return std::as_bytes(std::span(file.data(), file.size()));
}

std::string refusal(const std::string& file) {
  return bad_input([&] { parse_gguf(bytes_of(file), "f.gguf"); });
}

template <class T>
std::string raw(T value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

TEST(Gguf, ReadsEveryTypeOfValue) {
  TinyGguf file;
  file.set_raw("u8", 0, raw<uint8_t>(200));
  file.set_raw("i8", 1, raw<int8_t>(-3));
  file.set_raw("u16", 2, raw<uint16_t>(60000));
  file.set_raw("i16", 3, raw<int16_t>(-300));
  file.set_raw("u32", 4, raw<uint32_t>(4'000'000'000));
  file.set_raw("i32", 5, raw<int32_t>(-70000));
  file.set_raw("f32", 6, raw(1.5F));
  file.set_raw("bool", 7, "\1");
  file.set_text("text", "h\xC3\xA9");
  file.set_raw("u64", 10, raw<uint64_t>(uint64_t{1} << 40));
  file.set_raw("i64", 11, raw<int64_t>(-(int64_t{1} << 40)));
  file.set_raw("f64", 12, raw(0.1));
  file.set_strings("strings", {"a", "", "bc"});
  file.set_integers("integers", {1, -2});
  file.set_numbers("numbers", {0.5F});
  file.set_raw("bools", 9, raw<uint32_t>(7) + raw<uint64_t>(2) + std::string("\0\1", 2));
  const std::string text = file.bytes(2);
  const GgufHeader header = parse_gguf(bytes_of(text), "f");
  EXPECT_EQ(header.version, 2U);
  const auto integer = [&](const char* key) { return std::get<int64_t>(header.values.at(key)); };
  EXPECT_EQ(integer("u8"), 200);
  EXPECT_EQ(integer("i8"), -3);
  EXPECT_EQ(integer("u16"), 60000);
  EXPECT_EQ(integer("i16"), -300);
  EXPECT_EQ(integer("u32"), 4'000'000'000);
  EXPECT_EQ(integer("i32"), -70000);
  EXPECT_EQ(integer("u64"), int64_t{1} << 40);
  EXPECT_EQ(integer("i64"), -(int64_t{1} << 40));
  EXPECT_EQ(std::get<double>(header.values.at("f32")), 1.5);
  EXPECT_EQ(std::get<double>(header.values.at("f64")), 0.1);
  EXPECT_TRUE(std::get<bool>(header.values.at("bool")));
  EXPECT_EQ(std::get<std::string_view>(header.values.at("text")), "h\xC3\xA9");
  EXPECT_THAT(std::get<GgufStrings>(header.values.at("strings")), ElementsAre("a", "", "bc"));
  EXPECT_THAT(std::get<GgufIntegers>(header.values.at("integers")), ElementsAre(1, -2));
  EXPECT_THAT(std::get<GgufNumbers>(header.values.at("numbers")), ElementsAre(0.5));
  EXPECT_THAT(std::get<GgufBools>(header.values.at("bools")), ElementsAre(false, true));
}

TEST(Gguf, PlacesTensorsOutermostExtentFirst) {
  TinyGguf file;
  file.set_tensor("a", {2, 32}, 8, std::string(68, 'q'));
  file.set_tensor("b", {3}, 0, std::string(12, 'f'));
  const std::string text = file.bytes();
  const GgufHeader header = parse_gguf(bytes_of(text), "f");
  ASSERT_EQ(header.tensors.size(), 2U);
  EXPECT_EQ(header.tensors[0].shape, (Shape{2, 32}));
  EXPECT_EQ(header.tensors[0].type->name, "Q8_0");
  EXPECT_EQ(header.tensors[0].bytes, 68U);
  EXPECT_EQ(text.substr(header.tensors[0].offset, 68), std::string(68, 'q'));
  EXPECT_EQ(header.tensors[1].bytes, 12U);
  EXPECT_EQ(text.substr(header.tensors[1].offset, 12), std::string(12, 'f'));
}

TEST(Gguf, RefusesOtherFilesAndVersions) {
  EXPECT_THAT(refusal("{\"a\": 1}"), HasSubstr("begins with \"{\"a\"\", expected \"GGUF\""));
  EXPECT_THAT(refusal(""), HasSubstr("is truncated"));
  EXPECT_THAT(refusal(TinyGguf().bytes(1)), HasSubstr("is GGUF of version 1, expected 2 or 3"));
  EXPECT_THAT(refusal(TinyGguf().bytes(0x03000000)), HasSubstr("is a big-endian GGUF"));
}

TEST(Gguf, RefusesEveryTruncation) {
  TinyGguf file;
  file.set_text("key", "value");
  file.set_strings("list", {"a", "b"});
  file.set_tensor("t", {2, 32}, 3, std::string(40, 'x'));
  const std::string whole = file.bytes();
  const std::string end = whole.substr(0, whole.size() - 24);  // padding behind the data
  parse_gguf(bytes_of(end), "f");
  for (size_t size = 0; size < end.size(); ++size) {
    const std::string cut = end.substr(0, size);
    EXPECT_FALSE(refusal(cut).empty()) << size;
  }
}

TEST(Gguf, RefusesCountsThatTheFileCannotHold) {
  const std::string head = "GGUF" + raw<uint32_t>(3);
  EXPECT_THAT(refusal(head + raw<uint64_t>(uint64_t{1} << 60) + raw<uint64_t>(0)),
              HasSubstr("states 1152921504606846976 tensors, which the 8 bytes left cannot hold"));
  EXPECT_THAT(refusal(head + raw<uint64_t>(0) + raw<uint64_t>(UINT64_MAX)),
              HasSubstr("states 18446744073709551615 values"));
  TinyGguf file;
  file.set_raw("list", 9, raw<uint32_t>(8) + raw<uint64_t>(uint64_t{1} << 50));
  EXPECT_THAT(refusal(file.bytes()), HasSubstr("\"list\": states 1125899906842624 array items"));
  TinyGguf text;
  text.set_raw("word", 8, raw<uint64_t>(UINT64_MAX));
  EXPECT_THAT(refusal(text.bytes()), HasSubstr("\"word\": is truncated"));
}

TEST(Gguf, RefusesUnknownValueTypesAndArraysOfArrays) {
  TinyGguf unknown;
  unknown.set_raw("key", 13, std::string(8, '\0'));
  EXPECT_THAT(refusal(unknown.bytes()), HasSubstr("\"key\": has the unknown value type 13"));
  TinyGguf nested;
  nested.set_raw("key", 9, raw<uint32_t>(9) + raw<uint64_t>(0) + std::string(24, '\0'));
  EXPECT_THAT(refusal(nested.bytes()), HasSubstr("\"key\": is an array of arrays"));
  TinyGguf flag;
  flag.set_raw("key", 7, "\2");
  EXPECT_THAT(refusal(flag.bytes()), HasSubstr("\"key\": a bool is 2, expected 0 or 1"));
  TinyGguf large;
  large.set_raw("key", 10, raw<uint64_t>(UINT64_MAX));
  EXPECT_THAT(refusal(large.bytes()), HasSubstr("18446744073709551615 is larger than any count"));
}

TEST(Gguf, RefusesAKeyOrATensorGivenTwice) {
  TinyGguf file;
  file.set_bool("aa", true);
  file.set_bool("ab", true);
  std::string text = file.bytes();
  text[text.find("ab") + 1] = 'a';
  EXPECT_THAT(refusal(text), HasSubstr("\"aa\": is given twice"));
  TinyGguf tensors;
  tensors.set_zeros("ta", {1});
  tensors.set_zeros("tb", {1});
  text = tensors.bytes();
  text[text.find("tb") + 1] = 'a';
  EXPECT_THAT(refusal(text), HasSubstr("\"ta\": is the name of two tensors"));
}

TEST(Gguf, RefusesTensorsThatAreNotWhole) {
  const auto with = [](const std::vector<uint64_t>& extents, uint32_t type) {
    TinyGguf file;
    file.set_tensor("t", extents, type, std::string(64, '\0'));
    return refusal(file.bytes());
  };
  EXPECT_THAT(with({2, 31}, 8), HasSubstr("rows of 31 elements are not whole blocks of 32 (Q8_0)"));
  EXPECT_THAT(with({2, 32}, 200), HasSubstr("has the unknown tensor type 200"));
  EXPECT_THAT(with({}, 0), HasSubstr("has 0 dimensions, expected 1 to 4"));
  EXPECT_THAT(with({1, 1, 1, 1, 1}, 0), HasSubstr("has 5 dimensions, expected 1 to 4"));
  EXPECT_THAT(with({0}, 0), HasSubstr("has a dimension of 0"));
  EXPECT_THAT(with({17}, 0), HasSubstr("is truncated: F32 [17] needs 68 bytes at data offset 0"));
  EXPECT_THAT(with({uint64_t{1} << 33, uint64_t{1} << 33}, 0), HasSubstr("has over 2^62 bytes"));
  EXPECT_THAT(with({uint64_t{1} << 63}, 0), HasSubstr("is larger than any count"));
}

TEST(Gguf, RefusesOffsetsOutsideUnalignedOrOverlapping) {
  TinyGguf file;
  file.set_zeros("ta", {16});
  file.set_zeros("tb", {16});
  file.set_offset("tb", 32);
  EXPECT_THAT(refusal(file.bytes()), HasSubstr("tensors \"ta\" and \"tb\" overlap at byte"));
  file.set_offset("tb", 40);
  EXPECT_THAT(refusal(file.bytes()), HasSubstr("offset 40 is not a multiple of the alignment 32"));
  file.set_offset("tb", 1 << 20);
  EXPECT_THAT(refusal(file.bytes()), HasSubstr("\"tb\": is truncated"));
  file.set_offset("tb", (uint64_t{1} << 63) - 32);
  EXPECT_THAT(refusal(file.bytes()), HasSubstr("\"tb\": is truncated"));
}

TEST(Gguf, RefusesHolesBetweenTensorsAndBytesBehindThem) {
  TinyGguf file;
  file.set_tensor("ta", {2, 32}, 1, std::string(128, 'x'));
  file.set_tensor("tb", {2, 32}, 1, std::string(128, 'x'));
  const uint64_t data = file.bytes().size() - 256;
  parse_gguf(bytes_of(file.bytes()), "f");
  // Half-precision numbers that are called four-bit ones: 36 bytes, 64 with padding.
  file.set_tensor("ta", {2, 32}, 2, std::string(128, 'x'));
  EXPECT_THAT(refusal(file.bytes()),
              HasSubstr(fmt::format("a hole of 64 bytes: tensor \"tb\" (F16 [2, 32]) begins at "
                                    "byte {}, expected {}, where \"ta\" (Q4_0 [2, 32]) ends",
                                    data + 128, data + 64)));
  file.set_tensor("ta", {2, 32}, 1, std::string(128, 'x'));
  file.set_tensor("tb", {2, 32}, 2, std::string(128, 'x'));
  EXPECT_THAT(refusal(file.bytes()),
              HasSubstr(fmt::format("64 bytes after the last tensor, \"tb\" (Q4_0 [2, 32]): "
                                    "expected a file of {} bytes, found {}",
                                    data + 192, data + 256)));
  TinyGguf late;
  late.set_zeros("ta", {8});
  late.set_offset("ta", 32);
  const std::string moved = late.bytes() + std::string(32, '\0');
  EXPECT_THAT(refusal(moved),
              HasSubstr(fmt::format("a hole of 32 bytes: tensor \"ta\" (F32 [8]) begins at byte "
                                    "{}, expected {}, where the header ends",
                                    moved.size() - 32, moved.size() - 64)));
  EXPECT_THAT(refusal(TinyGguf().bytes() + "x"), HasSubstr("1 byte after the last tensor:"));
}

TEST(Gguf, TakesTensorsInAnyOrderOfOffsets) {
  TinyGguf file;
  file.set_zeros("ta", {8});
  file.set_zeros("tb", {8});
  file.set_offset("ta", 32);
  file.set_offset("tb", 0);
  const std::string text = file.bytes();
  const GgufHeader header = parse_gguf(bytes_of(text), "f");
  EXPECT_EQ(header.tensors[0].offset, header.tensors[1].offset + 32);
}

TEST(Gguf, GivesEveryRefusalANextStep) {
  TinyGguf file;
  file.set_text("key", "value");
  file.set_bool("flag", true);
  file.set_zeros("ta", {2, 32});
  file.set_zeros("tb", {3});
  const std::string whole = file.bytes();
  int refused = 0;
  for (size_t at = 0; at < whole.size() - 384; ++at) {
    for (const char other : {'\0', '\1', '\x7F', '\xFF'}) {
      std::string spoilt = whole;
      spoilt[at] = other;
      try {
        parse_gguf(bytes_of(spoilt), "f");
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), Code::BadInput);
        EXPECT_FALSE(error.hint().empty()) << error.message();
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 100);
}

TEST(Gguf, TakesAnAlignmentAndRefusesAnAbsurdOne) {
  TinyGguf file;
  file.set_alignment(8);
  file.set_zeros("t", {4});
  EXPECT_EQ(parse_gguf(bytes_of(file.bytes()), "f").tensors[0].offset % 8, 0U);
  for (const uint32_t alignment : {0U, 7U, 1U << 24}) {
    file.set_integer("general.alignment", alignment);
    EXPECT_THAT(refusal(file.bytes()), HasSubstr("general.alignment"));
  }
  file.set_text("general.alignment", "32");
  EXPECT_THAT(refusal(file.bytes()), HasSubstr("got another type"));
}

class GgufFileTest : public testing::Test {
 protected:
  GgufFile open(const TinyGguf& file) { return GgufFile::open(file.write(path())); }
  std::filesystem::path path() const { return folder_.path() / "f.gguf"; }

 private:
  TinyFolder folder_;
};

TEST_F(GgufFileTest, GivesValuesByType) {
  TinyGguf file;
  file.set_text("text", "x");
  file.set_integer("n", 7);
  file.set_number("x", 0.5F);
  file.set_bool("b", true);
  file.set_strings("s", {"p"});
  file.set_integers("i", {1});
  file.set_numbers("f", {2});
  file.set_tensor("t", {1, 32}, 8, std::string(34, 'q'));
  const GgufFile read = open(file);
  EXPECT_EQ(read.version(), 3U);
  EXPECT_EQ(read.text("text"), "x");
  EXPECT_EQ(read.integer("n", 0, 9), 7);
  EXPECT_EQ(read.number("x"), 0.5);
  EXPECT_EQ(read.find_bool("b"), true);
  EXPECT_EQ(read.find_text("none"), std::nullopt);
  EXPECT_EQ(read.find_integer("none", 0, 1), std::nullopt);
  EXPECT_EQ(read.find_number("none"), std::nullopt);
  EXPECT_EQ(read.find_bool("none"), std::nullopt);
  EXPECT_EQ(read.find_strings("none"), nullptr);
  EXPECT_THAT(*read.find_strings("s"), ElementsAre("p"));
  EXPECT_THAT(*read.find_integers("i"), ElementsAre(1));
  EXPECT_THAT(*read.find_numbers("f"), ElementsAre(2));
  EXPECT_THAT(read.keys(), ElementsAre("b", "f", "i", "n", "s", "text", "x"));
  EXPECT_TRUE(read.has("n"));
  EXPECT_FALSE(read.has("t"));
  ASSERT_NE(read.find("t"), nullptr);
  EXPECT_EQ(read.find("u"), nullptr);
  EXPECT_EQ(read.bytes(*read.find("t")).size(), 34U);
  EXPECT_EQ(read.bytes(*read.find("t"))[0], std::byte{'q'});
}

TEST_F(GgufFileTest, NamesFileKeyAndTypeOfWhatIsWrong) {
  TinyGguf file;
  file.set_text("text", "x");
  file.set_integer("n", 7);
  file.set_number("inf", std::numeric_limits<float>::infinity());
  const GgufFile read = open(file);
  EXPECT_THAT(bad_input([&] { read.text("none"); }),
              AllOf(HasSubstr(path().string()), HasSubstr("has no value none")));
  EXPECT_THAT(bad_input([&] { read.integer("none", 0, 1); }), HasSubstr("has no value none"));
  EXPECT_THAT(bad_input([&] { read.number("none"); }), HasSubstr("has no value none"));
  EXPECT_THAT(bad_input([&] { read.text("n"); }),
              HasSubstr("n is of another type, expected a string"));
  EXPECT_THAT(bad_input([&] { read.integer("text", 0, 1); }), HasSubstr("expected a whole number"));
  EXPECT_THAT(bad_input([&] { read.integer("n", 0, 6); }), HasSubstr("n is 7, expected 0 to 6"));
  EXPECT_THAT(bad_input([&] { read.find_bool("n"); }), HasSubstr("expected true or false"));
  EXPECT_THAT(bad_input([&] { read.find_strings("n"); }),
              HasSubstr("expected an array of strings"));
  EXPECT_THAT(bad_input([&] { read.number("inf"); }), HasSubstr("expected a finite number"));
}

TEST_F(GgufFileTest, NamesTheCommandThatFetchesAFileOfTheCache) {
  namespace fs = std::filesystem;
  const fs::path repository = path().parent_path() / "models--org--name";
  const std::string commit(40, 'a');
  const fs::path file = repository / "snapshots" / commit / "m.gguf";
  fs::create_directories(file.parent_path());
  fs::create_directories(repository / "blobs");
  fs::create_symlink("../../blobs/etag", file);
  const auto hint = [&] {
    try {
      GgufFile::open(file);
    } catch (const Error& error) {
      return error.hint();
    }
    return std::string("nothing was thrown");
  };
  const std::string command = "`hf download org/name m.gguf --revision " + commit;
  EXPECT_THAT(hint(), HasSubstr(command + "`"));
  const std::string whole = tiny_gguf().bytes();
  for (const size_t size : {size_t{0}, size_t{30}, size_t{2000}, whole.size() - 64}) {
    write_bytes(repository / "blobs" / "etag", whole.substr(0, size));
    EXPECT_THAT(hint(), HasSubstr(command + " --force-download`")) << size;
  }
}

TEST_F(GgufFileTest, RefusesOnePartOfASplitFile) {
  TinyGguf file;
  file.set_raw("split.count", 2, raw<uint16_t>(3));
  EXPECT_THAT(bad_input([&] { open(file); }), HasSubstr("is one of 3 parts of a split file"));
  file.set_raw("split.count", 2, raw<uint16_t>(1));
  EXPECT_EQ(open(file).tensors().size(), 0U);
}

TEST(GgufType, KnowsTheTypesThatFilesHold) {
  ASSERT_NE(gguf_tensor_type(12), nullptr);
  EXPECT_EQ(gguf_tensor_type(12)->name, "Q4_K");
  EXPECT_FALSE(gguf_tensor_type(12)->decode.has_value());
  EXPECT_EQ(gguf_tensor_type(4), nullptr);
  EXPECT_EQ(gguf_decoded_names(), "F32, F16, BF16, Q4_0, Q4_1, Q8_0");
}

}  // namespace
}  // namespace octet
