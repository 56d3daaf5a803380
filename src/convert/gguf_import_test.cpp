#include "convert/gguf_import.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/mapped_file.h"
#include "io/checkpoint.h"
#include "testing/broken_files.h"
#include "testing/tiny_gguf.h"
#include "text/tokenizer.h"

namespace octet {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

uint32_t crc32(std::span<const std::byte> bytes) {
  uint32_t crc = 0xFFFFFFFF;
  for (const std::byte byte : bytes) {
    crc ^= std::to_integer<uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1) != 0 ? 0xEDB88320U : 0);
  }
  return ~crc;
}

std::vector<std::string> names_in(const fs::path& dir) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(dir)) names.push_back(entry.path().filename());
  return names;
}

std::string golden_name(const testing::TestParamInfo<const char*>& row) {
  std::string name = row.param;
  std::erase(name, '-');
  return name;
}

class GgufImport : public testing::Test {
 protected:
  fs::path out() const { return folder_.path() / "out"; }
  fs::path gguf() const { return folder_.path() / "model.gguf"; }

  ImportSummary import(const fs::path& path, uint64_t max_shard_bytes = kDefaultShardBytes) const {
    const GgufFile file = GgufFile::open(path);
    return import_gguf({&file, out(), max_shard_bytes}, {});
  }
  ImportSummary import(const TinyGguf& file) const { return import(file.write(gguf())); }

  // The message that importing `file` gives, with its code before it; nothing may be left behind.
  std::string refusal(const TinyGguf& file) const {
    std::string said = "nothing was thrown";
    try {
      import(file);
    } catch (const Error& error) {
      said = fmt::format("{} {}", exit_status(error.code()), error.message());
      EXPECT_THAT(error.message(), HasSubstr(gguf().string()));
      EXPECT_FALSE(error.hint().empty()) << said;
    }
    fs::remove(gguf());
    EXPECT_THAT(names_in(folder_.path()), IsEmpty()) << said;
    return said;
  }
  // The same of the tiny model after `spoil`.
  std::string refusal(const std::function<void(TinyGguf&)>& spoil) const {
    TinyGguf file = tiny_gguf();
    spoil(file);
    return refusal(file);
  }
  json config() const { return json::parse(read_text_file(out() / "config.json", 1 << 20)); }

  TinyFolder folder_;
};

class GgufGolden : public GgufImport, public testing::WithParamInterface<const char*> {
 protected:
  json golden() const {
    return json::parse(
        read_text_file(fmt::format("testing/data/gguf/{}.json", GetParam()), 1 << 20));
  }
  ImportSummary import_golden(uint64_t max_shard_bytes = kDefaultShardBytes) const {
    return import(fmt::format("testing/data/gguf/{}.gguf", GetParam()), max_shard_bytes);
  }
};

TEST_P(GgufGolden, GivesTheWeightsThatLlamaCppMeans) {
  const ImportSummary summary = import_golden();
  const json tensors = golden()["tensors"];
  const Checkpoint checkpoint = Checkpoint::open(out());
  EXPECT_EQ(checkpoint.tensors().size(), tensors.size());
  EXPECT_EQ(summary.tensors, static_cast<int64_t>(tensors.size()));
  EXPECT_EQ(summary.bytes_out, checkpoint.file_bytes());
  for (const auto& [name, expected] : tensors.items()) {
    const TensorEntry* entry = checkpoint.find(name);
    ASSERT_NE(entry, nullptr) << name;
    EXPECT_EQ(entry->dtype, DType::BF16);
    EXPECT_EQ(json::parse(to_string(entry->shape)), expected[0]) << name;
    EXPECT_EQ(crc32({checkpoint.view(*entry).data, entry->bytes}), expected[1]) << name;
  }
}

TEST_P(GgufGolden, GivesTheConfig) {
  import_golden();
  const json found = config();
  const json wanted = golden()["config"];
  for (const auto& [key, expected] : wanted.items()) {
    ASSERT_TRUE(found.contains(key)) << key;
    EXPECT_EQ(found[key], expected) << key;
  }
  const json generation = json::parse(read_text_file(out() / "generation_config.json", 1 << 20));
  EXPECT_EQ(generation["eos_token_id"], wanted["eos_token_id"]);
}

TEST_P(GgufGolden, GivesTheTokens) {
  import_golden();
  const Tokenizer tokenizer = Tokenizer::load(out());
  const json texts = golden()["texts"];
  for (const auto& row : texts) {
    EXPECT_EQ(json(tokenizer.encode(row[0].get<std::string>())), row[1]) << row[0];
  }
}

TEST_P(GgufGolden, SplitsIntoShardsOfTheSameBytes) {
  import_golden();
  const Checkpoint whole = Checkpoint::open(out());
  const fs::path moved = folder_.path() / "whole";
  fs::rename(out(), moved);
  const ImportSummary summary = import_golden(20'000);
  EXPECT_GT(summary.files, 2);
  const Checkpoint split = Checkpoint::open(out());
  EXPECT_EQ(static_cast<int64_t>(split.shards().size()), summary.files);
  EXPECT_THAT(split.notes(), IsEmpty());
  for (const TensorEntry& entry : whole.tensors()) {
    const TensorEntry* other = split.find(entry.name);
    ASSERT_NE(other, nullptr) << entry.name;
    EXPECT_EQ(std::memcmp(whole.view(entry).data, split.view(*other).data, entry.bytes), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Files, GgufGolden,
                         testing::Values("llama-tied", "llama3", "llama-biases",
                                         "llama-sentencepiece", "qwen2", "qwen3"),
                         golden_name);

TEST_F(GgufImport, WritesTheFilesOfAModelAndNothingElse) {
  const ImportSummary summary = import(tiny_gguf());
  EXPECT_EQ(summary.architecture, "LlamaForCausalLM");
  EXPECT_EQ(summary.files, 1);
  EXPECT_THAT(summary.notes, IsEmpty());
  EXPECT_THAT(names_in(out()),
              UnorderedElementsAre("config.json", "generation_config.json", "tokenizer.json",
                                   "tokenizer_config.json", "model.safetensors"));
}

TEST_F(GgufImport, ReportsProgressToTheLastByteAndStopsWhenAsked) {
  const GgufFile file = GgufFile::open(tiny_gguf().write(gguf()));
  ImportProgress last;
  import_gguf({&file, out()}, [&](ImportProgress p) {
    EXPECT_GE(p.bytes_done, last.bytes_done);
    last = p;
  });
  EXPECT_EQ(last.bytes_done, last.bytes_total);
  fs::remove_all(out());
  EXPECT_THROW(
      import_gguf({&file, out()}, [](ImportProgress) { throw_error(Code::Interrupted, "stop"); }),
      Error);
  fs::remove(gguf());
  EXPECT_THAT(names_in(folder_.path()), IsEmpty());
}

TEST_F(GgufImport, RefusesAFolderThatIsNotEmpty) {
  fs::create_directories(out());
  write_bytes(out() / "x", "x");
  EXPECT_THAT(bad_input([&] { import(tiny_gguf()); }), HasSubstr("exists and is not empty"));
  EXPECT_TRUE(fs::exists(out() / "x"));
}

TEST_F(GgufImport, RefusesArchitecturesItDoesNotKnow) {
  EXPECT_THAT(refusal([](TinyGguf& f) { f.set_text("general.architecture", "mamba"); }),
              HasSubstr("3 " + gguf().string() + ": general.architecture \"mamba\""));
  EXPECT_LT(refusal([](TinyGguf& f) {
              f.set_text("general.architecture", std::string(200'000, 'm'));
            }).size(),
            2000U);
  EXPECT_THAT(refusal([](TinyGguf& f) { f.remove("general.architecture"); }),
              HasSubstr("has no value general.architecture"));
}

TEST_F(GgufImport, RefusesFilesThatAreNoModels) {
  EXPECT_THAT(
      refusal([](TinyGguf& f) { f.set_text("general.type", "adapter"); }),
      HasSubstr("3 " + gguf().string() + ": general.type is \"adapter\", expected \"model\""));
  TinyGguf file = tiny_gguf();
  file.set_text("general.type", "model");
  EXPECT_EQ(import(file).files, 1);
}

TEST_F(GgufImport, NotesATokenizerWithoutTypesOfTokens) {
  TinyGguf file = tiny_gguf();
  file.remove("tokenizer.ggml.token_type");
  EXPECT_THAT(import(file).notes,
              ElementsAre(HasSubstr("tokenizer.ggml.token_type is absent: no token is special")));
}

TEST_F(GgufImport, NotesAChatTemplateThatDoesNotCompile) {
  TinyGguf file = tiny_gguf();
  file.set_text("tokenizer.chat_template", "{{ messages[0].content }}");
  file.set_text("tokenizer.chat_template.tool_use", "{% if %}");
  EXPECT_THAT(import(file).notes,
              ElementsAre(AllOf(HasSubstr("tokenizer.chat_template.tool_use cannot be used: "),
                                HasSubstr("conversations do not"))));
}

TEST_F(GgufImport, RefusesWhatTheArchitectureDoesNotCompute) {
  EXPECT_THAT(
      refusal([](TinyGguf& f) { f.set_integer("llama.expert_count", 8); }),
      AllOf(HasSubstr("3 "), HasSubstr("llama.expert_count is 8: LlamaForCausalLM does not")));
  EXPECT_THAT(refusal([](TinyGguf& f) { f.set_number("llama.logit_scale", 0.5F); }),
              HasSubstr("llama.logit_scale is 0.5"));
  EXPECT_THAT(refusal([](TinyGguf& f) { f.set_bool("llama.use_parallel_residual", true); }),
              HasSubstr("llama.use_parallel_residual is 1"));
  EXPECT_THAT(refusal([](TinyGguf& f) {
                f.set_integers("llama.attention.sliding_window", {1, 2});
              }),
              HasSubstr("llama.attention.sliding_window is no single number"));
  EXPECT_THAT(refusal([](TinyGguf& f) { f.set_bool("llama.attention.causal", false); }),
              HasSubstr("llama.attention.causal is false"));
  EXPECT_THAT(refusal([](TinyGguf& f) { f.set_integer("llama.rope.dimension_count", 16); }),
              HasSubstr("llama.rope.dimension_count is 16: only the size of a head, 32"));
}

TEST_F(GgufImport, TakesNeutralAndUnknownValues) {
  TinyGguf file = tiny_gguf();
  file.set_integer("llama.expert_count", 0);
  file.set_number("llama.logit_scale", 1);
  file.set_text("llama.novelty", "?");
  EXPECT_THAT(import(file).notes, ElementsAre("value llama.novelty is not known and was left out"));
}

TEST_F(GgufImport, RefusesMissingAndAbsurdNumbers) {
  EXPECT_THAT(refusal([](TinyGguf& f) { f.remove("llama.block_count"); }),
              HasSubstr("2 " + gguf().string() + ": has no value llama.block_count"));
  EXPECT_THAT(refusal([](TinyGguf& f) { f.set_integer("llama.block_count", 4'000'000'000); }),
              HasSubstr("llama.block_count is 4000000000, expected 1 to 4096"));
  EXPECT_THAT(
      refusal([](TinyGguf& f) { f.set_integer("llama.attention.head_count", 3); }),
      HasSubstr("llama.embedding_length 32 is not a multiple of llama.attention.head_count"));
  EXPECT_THAT(refusal([](TinyGguf& f) { f.set_integer("llama.attention.head_count_kv", 2); }),
              HasSubstr("llama.attention.head_count_kv is 2, expected a divisor of"));
  EXPECT_THAT(refusal([](TinyGguf& f) { f.set_integer("llama.attention.head_count", 32); }),
              HasSubstr("heads of 1 elements cannot be rotated in pairs"));
  EXPECT_THAT(
      refusal([](TinyGguf& f) { f.set_number("llama.attention.layer_norm_rms_epsilon", 0); }),
      HasSubstr("llama.attention.layer_norm_rms_epsilon is 0, expected a number over 0"));
  EXPECT_THAT(
      refusal([](TinyGguf& f) { f.set_number("llama.attention.layer_norm_rms_epsilon", 1.8e19); }),
      HasSubstr("expected a number below 1"));
  for (const float base : {0.0F, -1.0F, 1e-40F}) {
    EXPECT_THAT(refusal([&](TinyGguf& f) { f.set_number("llama.rope.freq_base", base); }),
                HasSubstr("llama.rope.freq_base is "));
  }
  EXPECT_THAT(refusal([](TinyGguf& f) { f.set_text("llama.context_length", "long"); }),
              HasSubstr("llama.context_length is of another type, expected a whole number"));
  EXPECT_THAT(refusal([](TinyGguf& f) { f.set_integer("llama.vocab_size", 9); }),
              HasSubstr("llama.vocab_size is 9, token_embd.weight has 258 rows"));
}

TEST_F(GgufImport, RefusesTensorsThatAreMissingOverOrOfAnotherShape) {
  EXPECT_THAT(refusal([](TinyGguf& f) { f.remove_tensor("blk.0.ffn_up.weight"); }),
              HasSubstr("2 " + gguf().string() + ": has no tensor blk.0.ffn_up.weight"));
  EXPECT_THAT(refusal([](TinyGguf& f) {
                f.set_zeros("blk.1.ffn_up.weight", {64, 32});
              }),
              HasSubstr("3 " + gguf().string() + ": tensor \"blk.1.ffn_up.weight\" has no place"));
  EXPECT_THAT(refusal([](TinyGguf& f) { f.set_zeros("blk.0.attn_q.bias", {32}); }),
              HasSubstr("has no tensor blk.0.attn_k.bias"));
  EXPECT_THAT(refusal([](TinyGguf& f) {
                f.set_zeros("blk.0.ffn_up.weight", {32, 64});
              }),
              HasSubstr("tensor blk.0.ffn_up.weight has the shape [32, 64], expected [64, 32]"));
  EXPECT_THAT(refusal([](TinyGguf& f) { f.set_zeros("token_embd.weight", {258}); }),
              HasSubstr("token_embd.weight has the shape [258], expected [vocabulary, 32]"));
  EXPECT_THAT(refusal([](TinyGguf& f) {
                f.set_zeros("output.weight", {257, 32});
              }),
              HasSubstr("output.weight has the shape [257, 32], expected [258, 32]"));
}

TEST_F(GgufImport, RefusesTypesItDoesNotDecodeAndQuantisedVectors) {
  EXPECT_THAT(refusal([](TinyGguf& f) {
                f.set_tensor("blk.0.ffn_up.weight", {64, 32}, 6, std::string(64 * 22, '\0'));
              }),
              AllOf(HasSubstr("3 "), HasSubstr("blk.0.ffn_up.weight is of type Q5_0")));
  EXPECT_THAT(refusal([](TinyGguf& f) {
                f.set_tensor("output_norm.weight", {32}, 8, std::string(34, '\0'));
              }),
              HasSubstr("output_norm.weight is of type Q8_0"));
}

TEST_F(GgufImport, RefusesValuesThatAreNotFinite) {
  EXPECT_THAT(refusal([](TinyGguf& f) {
                std::string bytes(64 * 32 * 4, '\0');
                bytes.replace(4 * (32 * 3 + 5) + 2, 2, "\x80\x7F");  // +inf
                f.set_tensor("blk.0.ffn_up.weight", {64, 32}, 0, bytes);
              }),
              HasSubstr("tensor blk.0.ffn_up.weight: element 101 is not finite in bf16"));
}

TEST_F(GgufImport, NamesTheFileWhoseTokenizerCannotBeReadBack) {
  EXPECT_THAT(refusal([](TinyGguf& f) { f.set_strings("tokenizer.ggml.merges", {"no such"}); }),
              HasSubstr("its tokenizer cannot be read back: "));
}

class GgufRope : public GgufImport {
 protected:
  json scaling(const std::function<void(TinyGguf&)>& change) const {
    TinyGguf file = tiny_gguf();
    change(file);
    import(file);
    json found = config()["rope_scaling"];
    fs::remove_all(out());
    return found;
  }
};

TEST_F(GgufRope, WritesEveryScalingItKnows) {
  EXPECT_EQ(scaling([](TinyGguf&) {}), nullptr);
  EXPECT_EQ(scaling([](TinyGguf& f) { f.set_text("llama.rope.scaling.type", "none"); }), nullptr);
  EXPECT_EQ(scaling([](TinyGguf& f) { f.set_number("llama.rope.scale_linear", 4); }),
            json::parse(R"({"rope_type":"linear","factor":4.0})"));
  EXPECT_EQ(scaling([](TinyGguf& f) {
              f.set_text("llama.rope.scaling.type", "linear");
              f.set_number("llama.rope.scaling.factor", 2);
            }),
            json::parse(R"({"rope_type":"linear","factor":2.0})"));
  EXPECT_EQ(scaling([](TinyGguf& f) { f.set_number("llama.rope.scaling.factor", 2); }),
            json::parse(R"({"rope_type":"linear","factor":2.0})"));
  EXPECT_EQ(scaling([](TinyGguf& f) { f.set_number("llama.rope.scaling.factor", 1); }), nullptr);
  EXPECT_EQ(scaling([](TinyGguf& f) {
              f.set_text("llama.rope.scaling.type", "yarn");
              f.set_number("llama.rope.scaling.factor", 4);
              f.set_integer("llama.rope.scaling.original_context_length", 64);
              f.set_number("llama.rope.scaling.yarn_beta_fast", 24);
            }),
            json::parse(R"({"rope_type":"yarn","factor":4.0,"beta_fast":24.0,
                            "original_max_position_embeddings":64})"));
  EXPECT_EQ(scaling([](TinyGguf& f) {
              std::string ones;
              for (int i = 0; i < 16; ++i) ones += std::string("\0\0\x80\x3F", 4);
              f.set_tensor("rope_freqs.weight", {16}, 0, ones);
            }),
            nullptr);
}

TEST_F(GgufRope, MultipliesYarnsAttentionFactorByTheOneOfTheFile) {
  const json found = scaling([](TinyGguf& f) {
    f.set_text("llama.rope.scaling.type", "yarn");
    f.set_number("llama.rope.scaling.factor", 4);
    f.set_integer("llama.rope.scaling.original_context_length", 64);
    f.set_number("llama.rope.scaling.attn_factor", 0.5F);
  });
  EXPECT_DOUBLE_EQ(found["attention_factor"].get<double>(), 0.5 * (1 + 0.1 * std::log(4.0)));
}

TEST_F(GgufRope, RefusesEveryOther) {
  EXPECT_THAT(refusal([](TinyGguf& f) { f.set_text("llama.rope.scaling.type", "longrope"); }),
              AllOf(HasSubstr("3 "), HasSubstr("llama.rope.scaling.type is \"longrope\"")));
  EXPECT_THAT(refusal([](TinyGguf& f) { f.set_text("llama.rope.scaling.type", "linear"); }),
              HasSubstr("has no value llama.rope.scaling.factor"));
  EXPECT_THAT(refusal([](TinyGguf& f) {
                f.set_text("llama.rope.scaling.type", "linear");
                f.set_number("llama.rope.scaling.factor", -1);
              }),
              HasSubstr("llama.rope.scaling.factor is -1, expected a number over 0"));
  EXPECT_THAT(refusal([](TinyGguf& f) { f.set_number("llama.rope.scale_linear", -1); }),
              HasSubstr("llama.rope.scale_linear is -1"));
  EXPECT_THAT(refusal([](TinyGguf& f) {
                f.set_text("llama.rope.scaling.type", "yarn");
                f.set_number("llama.rope.scaling.attn_factor", 2);
              }),
              HasSubstr("has no value llama.rope.scaling.factor"));
  EXPECT_THAT(refusal([](TinyGguf& f) {
                f.set_number("llama.rope.scaling.factor", 2);
                f.set_number("llama.rope.scaling.attn_factor", 2);
              }),
              HasSubstr("llama.rope.scaling.attn_factor is 2, only 1 is known"));
  EXPECT_THAT(refusal([](TinyGguf& f) {
                f.set_text("llama.rope.scaling.type", "yarn");
                f.set_number("llama.rope.scaling.yarn_attn_factor", 2);
              }),
              HasSubstr("llama.rope.scaling.yarn_attn_factor is 2, only 1 is known"));
  EXPECT_THAT(refusal([](TinyGguf& f) { f.set_number("llama.rope.scaling.yarn_ext_factor", 1); }),
              HasSubstr("llama.rope.scaling.yarn_ext_factor is 1, only 0 is known"));
  for (const float factor : {0.0F, 1e-40F}) {
    EXPECT_THAT(refusal([&](TinyGguf& f) { f.set_number("llama.rope.scaling.factor", factor); }),
                HasSubstr("llama.rope.scaling.factor is "));
  }
  EXPECT_THAT(refusal([](TinyGguf& f) {
                f.set_number("llama.rope.scaling.factor", 2);
                f.set_zeros("rope_freqs.weight", {16});
              }),
              HasSubstr("frequencies are scaled by 2 and there is a tensor rope_freqs.weight"));
  EXPECT_THAT(refusal([](TinyGguf& f) {
                f.set_text("llama.rope.scaling.type", "yarn");
                f.set_number("llama.rope.scaling.yarn_log_multiplier", 0.1F);
              }),
              HasSubstr("yarn_log_multiplier is not known"));
  EXPECT_THAT(refusal([](TinyGguf& f) { f.set_zeros("rope_freqs.weight", {16}); }),
              HasSubstr("tensor rope_freqs.weight is no known scaling: element 0 is 0"));
  EXPECT_THAT(refusal([](TinyGguf& f) { f.set_zeros("rope_freqs.weight", {8}); }),
              HasSubstr("tensor rope_freqs.weight is F32 [8], expected F32 [16]"));
  EXPECT_THAT(refusal([](TinyGguf& f) {
                f.set_zeros("rope_freqs.weight", {16});
                f.set_text("llama.rope.scaling.type", "yarn");
              }),
              HasSubstr("type is yarn and there is a tensor rope_freqs.weight"));
}

}  // namespace
}  // namespace octet
