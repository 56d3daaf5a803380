#include "io/checkpoint.h"

#include <nlohmann/json.hpp>

#include "base/atomic_file.h"
#include "base/mapped_file.h"
#include "testing/broken_files.h"

namespace octet {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class CheckpointTest : public testing::Test {
 protected:
  fs::path dir() const { return folder_.path() / "m"; }

  // A channel-quantised M0 in `shards` files.
  fs::path model(int shards = 1) {
    TinyModel tiny;
    tiny.quant = tiny_fp8_dynamic();
    return tiny_model(tiny).write(dir(), shards);
  }
  std::string refusal(bool headers_only = false) {
    return bad_input([&] { Checkpoint::open(dir(), headers_only); });
  }
  void edit_index(const auto& change) {
    const fs::path path = dir() / "model.safetensors.index.json";
    nlohmann::json index = nlohmann::json::parse(read_text_file(path, 1 << 20));
    change(index);
    write_file(path, index.dump());
  }
  static fs::path shard(int number, int count) {
    return fmt::format("model-{:05}-of-{:05}.safetensors", number, count);
  }

  TinyFolder folder_;
};

// Names and bytes of every tensor.
std::map<std::string, std::string> content(const Checkpoint& checkpoint) {
  std::map<std::string, std::string> all;
  for (const TensorEntry& entry : checkpoint.tensors()) {
    all[std::string(entry.name)] =
        std::string(reinterpret_cast<const char*>(checkpoint.view(entry).data), entry.bytes);
  }
  return all;
}

TEST_F(CheckpointTest, OpensAFolderWithOneFile) {
  const Checkpoint checkpoint = Checkpoint::open(model());
  EXPECT_EQ(checkpoint.tensors().size(), 35U);  // 14 x (codes, scales), 5 norms, embedding, head
  EXPECT_EQ(checkpoint.shards().size(), 1U);
  EXPECT_EQ(checkpoint.dir(), dir());
  EXPECT_EQ(checkpoint.config().at("hidden_size"), 256);
  EXPECT_EQ(checkpoint.generation_config(), nullptr);
  EXPECT_TRUE(checkpoint.quant().quantised());
  EXPECT_EQ(checkpoint.file_bytes(), fs::file_size(dir() / "model.safetensors"));
  EXPECT_THAT(checkpoint.notes(), IsEmpty());
}

TEST_F(CheckpointTest, FindsTensorsByName) {
  const Checkpoint checkpoint = Checkpoint::open(model());
  const TensorEntry* entry = checkpoint.find("model.layers.1.mlp.down_proj.weight");
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(entry->dtype, DType::F8E4M3);
  EXPECT_EQ(entry->shape, (Shape{256, 384}));
  EXPECT_EQ(checkpoint.view(*entry).row_stride, 384);
  EXPECT_EQ(checkpoint.find("model.layers.1.mlp.down_proj"), nullptr);
  EXPECT_EQ(checkpoint.find(""), nullptr);
  for (const TensorEntry& each : checkpoint.tensors()) EXPECT_EQ(checkpoint.find(each.name), &each);
}

TEST_F(CheckpointTest, ShardsOneFileAndFolderHoldTheSameBytes) {
  const auto one = content(Checkpoint::open(model()));
  EXPECT_EQ(content(Checkpoint::open(dir() / "model.safetensors")), one);
  fs::remove_all(dir());
  const Checkpoint sharded = Checkpoint::open(model(4));
  EXPECT_EQ(sharded.shards().size(), 4U);
  EXPECT_EQ(content(sharded), one);
  fs::remove(dir() / "model.safetensors.index.json");
  EXPECT_EQ(content(Checkpoint::open(dir())), one);
}

TEST_F(CheckpointTest, TensorsComeByShardAndOffset) {
  const Checkpoint checkpoint = Checkpoint::open(model(3));
  const TensorEntry* last = nullptr;
  for (const TensorEntry& entry : checkpoint.tensors()) {
    if (last != nullptr) {
      EXPECT_LT(std::pair(last->shard, last->offset), std::pair(entry.shard, entry.offset));
    }
    last = &entry;
  }
}

TEST_F(CheckpointTest, MovesKeepNamesAndViews) {
  Checkpoint first = Checkpoint::open(model());
  const TensorEntry* entry = first.find("model.norm.weight");
  const std::byte* data = first.view(*entry).data;
  const Checkpoint second = std::move(first);
  EXPECT_EQ(second.find("model.norm.weight"), entry);
  EXPECT_EQ(second.view(*entry).data, data);
}

TEST_F(CheckpointTest, HeadersOnlyMapsNothingAndAdmitsCutShards) {
  model(3);
  const Checkpoint whole = Checkpoint::open(dir());
  for (int i = 1; i <= 3; ++i) {
    const std::string bytes = read_text_file(dir() / shard(i, 3), 1 << 30);
    uint64_t header = 0;
    std::memcpy(&header, bytes.data(), 8);
    write_bytes(dir() / shard(i, 3), bytes.substr(0, 8 + header));
  }
  const Checkpoint cut = Checkpoint::open(dir(), true);
  EXPECT_TRUE(cut.headers_only());
  EXPECT_EQ(cut.tensors().size(), whole.tensors().size());
  EXPECT_EQ(cut.file_bytes(), whole.file_bytes());
  const TensorEntry& entry = *cut.find("model.norm.weight");
  EXPECT_EQ(cut.view(entry).data, nullptr);
  EXPECT_EQ(cut.view(entry).shape, Shape{256});
  EXPECT_THAT(refusal(), HasSubstr("is truncated"));
}

TEST_F(CheckpointTest, GenerationConfigIsReadWhenThere) {
  model();
  write_file(dir() / "generation_config.json", R"({"temperature": 0.6})");
  const Checkpoint checkpoint = Checkpoint::open(dir());
  ASSERT_NE(checkpoint.generation_config(), nullptr);
  EXPECT_EQ(checkpoint.generation_config()->at("temperature"), 0.6);
  write_file(dir() / "generation_config.json", "[]");
  EXPECT_THAT(refusal(), HasSubstr("generation_config.json"));
}

TEST_F(CheckpointTest, AnAbsentModelAndOtherFormatsAreNamed) {
  EXPECT_THAT(refusal(), HasSubstr("No such file"));
  fs::create_directories(dir());
  EXPECT_THAT(refusal(), HasSubstr("holds no .safetensors file"));
  write_file(dir() / "model.gguf", "GGUF");
  EXPECT_THAT(refusal(), HasSubstr("model.gguf cannot be read"));
  EXPECT_THAT(bad_input([&] { Checkpoint::open(dir() / "model.gguf"); }),
              HasSubstr("neither a folder nor a .safetensors file"));
}

TEST_F(CheckpointTest, ConfigJsonMustBeThere) {
  model();
  fs::remove(dir() / "config.json");
  EXPECT_THAT(refusal(), HasSubstr("config.json"));
}

TEST_F(CheckpointTest, QuantErrorsNameTheFile) {
  model();
  write_file(dir() / "config.json", R"({"quantization_config": {"quant_method": "gptq"}})");
  EXPECT_THAT(refusal(),
              AllOf(HasSubstr("config.json: quantization_config.quant_method \"gptq\"")));
}

TEST_F(CheckpointTest, AModelOptFileIsRefusedByName) {
  model();
  write_file(dir() / "config.json", "{}");
  write_file(dir() / "hf_quant_config.json", R"({"quantization": {"quant_algo": "FP8"}})");
  EXPECT_THAT(refusal(), HasSubstr("\"modelopt\" is not supported"));
}

TEST_F(CheckpointTest, D01AMissingShardIsNamed) {
  model(3);
  fs::remove(dir() / shard(2, 3));
  EXPECT_THAT(refusal(), AllOf(HasSubstr("names 3 files, 1 of them are missing"),
                               HasSubstr("model-00002-of-00003.safetensors")));
  fs::remove(dir() / "model.safetensors.index.json");
  EXPECT_THAT(refusal(), HasSubstr("2 of 3 shards model-*-of-00003.safetensors are there"));
}

TEST_F(CheckpointTest, D02AStrayFileIsNotReadAndNoted) {
  const auto before = content(Checkpoint::open(model(2)));
  TinyModel other;
  other.seed = 7;
  tiny_model(other).write(folder_.path() / "other");
  fs::copy(folder_.path() / "other" / "model.safetensors", dir() / "model.safetensors");
  const Checkpoint checkpoint = Checkpoint::open(dir());
  EXPECT_EQ(content(checkpoint), before);
  EXPECT_THAT(checkpoint.notes(), ElementsAre(HasSubstr("not read: model.safetensors")));
}

TEST_F(CheckpointTest, AFolderWithOneModelFileIgnoresOthers) {
  model();
  write_file(dir() / "consolidated.safetensors", "not read at all");
  const Checkpoint checkpoint = Checkpoint::open(dir());
  EXPECT_EQ(checkpoint.shards().size(), 1U);
  EXPECT_THAT(checkpoint.notes(), ElementsAre(HasSubstr("consolidated.safetensors")));
}

TEST_F(CheckpointTest, D04AStaleIndexIsRefusedWithItsMissingFiles) {
  model(2);
  edit_index([](nlohmann::json& index) {
    int i = 0;
    for (auto& file : index["weight_map"]) {
      file = fmt::format("part-{:05}-of-00020.safetensors", i++ % 20);
    }
  });
  EXPECT_THAT(refusal(), AllOf(HasSubstr("names 20 files, 20 of them are missing"),
                               HasSubstr("part-00000-of-00020.safetensors"), HasSubstr("17 more")));
}

TEST_F(CheckpointTest, AnIndexThatNamesTooMuchOrTooLittleIsRefused) {
  model(2);
  edit_index([](nlohmann::json& index) {
    index["weight_map"]["model.ghost.weight"] = index["weight_map"]["lm_head.weight"];
  });
  EXPECT_THAT(refusal(), HasSubstr("names tensor \"model.ghost.weight\""));
  edit_index([](nlohmann::json& index) {
    index["weight_map"].erase("model.ghost.weight");
    index["weight_map"].erase("model.norm.weight");
  });
  EXPECT_THAT(refusal(),
              AllOf(HasSubstr("does not name 1 tensor of"), HasSubstr("model.norm.weight")));
}

TEST_F(CheckpointTest, AnIndexThatNamesTheWrongShardIsRefused) {
  model(2);
  edit_index(
      [](nlohmann::json& index) { index["weight_map"]["lm_head.weight"] = shard(2, 2).string(); });
  EXPECT_THAT(refusal(), HasSubstr("\"lm_head.weight\" in model-00002-of-00002.safetensors, it is "
                                   "in model-00001-of-00002.safetensors"));
}

TEST_F(CheckpointTest, AnIndexMayNotLeadOutOfTheFolder) {
  model(2);
  const std::string outside = (folder_.path() / "x.safetensors").string();
  for (const std::string& name : {std::string("../x.safetensors"), outside, std::string(""),
                                  std::string("a/../../x.safetensors")}) {
    edit_index([&](nlohmann::json& index) { index["weight_map"]["lm_head.weight"] = name; });
    EXPECT_THAT(refusal(), HasSubstr("expected a file name inside the folder")) << name;
  }
}

TEST_F(CheckpointTest, BrokenIndexesAreRefused) {
  model(2);
  const fs::path index = dir() / "model.safetensors.index.json";
  for (const char* text :
       {"", "[]", "{}", "{\"weight_map\": []}", "{\"weight_map\": {}}",
        "{\"weight_map\": {\"a\": 1}}",
        "{\"weight_map\": {\"a\": \"x.safetensors\", \"a\": \"x.safetensors\"}}"}) {
    write_file(index, text);
    EXPECT_THAT(refusal(), HasSubstr("index.json")) << text;
  }
}

TEST_F(CheckpointTest, AnIndexOfOneFileIsFine) {
  const Checkpoint before = Checkpoint::open(model());
  nlohmann::json map;
  for (const TensorEntry& entry : before.tensors()) {
    map[std::string(entry.name)] = "model.safetensors";
  }
  write_file(dir() / "model.safetensors.index.json", nlohmann::json{{"weight_map", map}}.dump());
  EXPECT_EQ(Checkpoint::open(dir()).tensors().size(), 35U);
}

TEST_F(CheckpointTest, OneShardOfSeveralIsNotAModel) {
  model(2);
  EXPECT_THAT(bad_input([&] { Checkpoint::open(dir() / shard(1, 2)); }),
              HasSubstr("is shard 1 of 2"));
}

TEST_F(CheckpointTest, D06ATensorInTwoShardsIsRefusedUnlessEqual) {
  fs::create_directories(dir());
  write_file(dir() / "config.json", "{}");
  const std::string header = "{" + header_entry("model.norm.weight", "U8", "[4]", "[0,4]") + "}";
  write_bytes(dir() / "a.safetensors", safetensors_bytes(header, 4));
  write_bytes(dir() / "b.safetensors", safetensors_bytes(header, 4));
  const Checkpoint equal = Checkpoint::open(dir());
  EXPECT_EQ(equal.tensors().size(), 1U);
  EXPECT_THAT(equal.notes(), ElementsAre(HasSubstr("in more than one file, with equal bytes")));
  write_bytes(dir() / "b.safetensors", safetensors_bytes(header, 0) + "xxxy");
  EXPECT_THAT(refusal(), AllOf(HasSubstr("duplicate tensor \"model.norm.weight\""),
                               HasSubstr("a.safetensors"), HasSubstr("b.safetensors")));
  write_bytes(dir() / "b.safetensors", safetensors_bytes(header, 0));
  EXPECT_THAT(refusal(true), HasSubstr("duplicate tensor"));
}

TEST_F(CheckpointTest, UnalignedTensorsAreCopiedOnceAndNoted) {
  fs::create_directories(dir());
  write_file(dir() / "config.json", "{}");
  // Seven bytes of header padding less than a writer that aligns would put.
  std::string header = "{" + header_entry("a", "F32", "[2]", "[0,8]") + "," +
                       header_entry("b", "F8_E4M3", "[3]", "[8,11]") + "}";
  header.resize((header.size() + 7) / 8 * 8 + 1, ' ');
  write_bytes(dir() / "model.safetensors",
              safetensors_bytes(header, 0) + std::string("\0\0\x80?\0\0\0@abc", 11));
  const Checkpoint checkpoint = Checkpoint::open(dir());
  const ConstTensorView view = checkpoint.view(*checkpoint.find("a"));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(view.data) % 4, 0U);
  EXPECT_EQ(view.as<float>()[0], 1.0F);
  EXPECT_EQ(view.as<float>()[1], 2.0F);
  EXPECT_EQ(checkpoint.view(*checkpoint.find("a")).data, view.data);
  EXPECT_THAT(checkpoint.notes(), ElementsAre(HasSubstr("1 tensor lies at unaligned offsets")));
}

TEST_F(CheckpointTest, ReadsTheCheckpointsOfTransformers) {
  const fs::path archs = "testing/data/archs";
  int folders = 0;
  for (const auto& entry : fs::directory_iterator(archs)) {
    if (!entry.is_directory()) continue;
    const Checkpoint checkpoint = Checkpoint::open(entry.path());
    const auto tensors = checkpoint.tensors();
    EXPECT_TRUE(std::any_of(tensors.begin(), tensors.end(), [](const TensorEntry& tensor) {
      return tensor.name.ends_with("model.embed_tokens.weight");  // wrappers have a prefix
    })) << entry.path();
    EXPECT_FALSE(checkpoint.quant().quantised());
    ++folders;
  }
  EXPECT_GT(folders, 10);
}

}  // namespace
}  // namespace octet
