// Section D of the cases, the files: shards, indexes, headers, memory, scales that nobody uses.
#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdlib>

#include "base/mapped_file.h"
#include "cli/mapped_fault.h"
#include "io/safetensors_writer.h"
#include "testing/broken_files.h"
#include "tests/cases/case_model.h"
#include "tests/integration/process.h"

namespace octet {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using Words = std::vector<std::string>;

std::string shard_name(int number, int count) {
  return fmt::format("model-{:05}-of-{:05}.safetensors", number, count);
}

// What plan and run say of a folder that neither can open: the same one message, exit status 2.
std::string program_refuses(const fs::path& dir) {
  const Ran plan = run_octet({"plan", dir.string()});
  const Words words{"run", dir.string(), "--prompt-ids", "1,2", "-n", "1"};
  const Ran run = run_octet(words);
  EXPECT_EQ(plan.status, 2) << describe_run(words, plan);
  EXPECT_EQ(run.status, 2) << describe_run(words, run);
  EXPECT_EQ(run.err, plan.err);
  EXPECT_EQ(run.out, "");
  EXPECT_THAT(run.err, StartsWith("octet: "));
  return run.err;
}

// A folder of config.json and one file of these bytes; what opening it says.
std::string open_refuses(const std::string& bytes) {
  const TinyFolder folder;
  write_bytes(folder.path() / "config.json", "{}");
  write_bytes(folder.path() / "model.safetensors", bytes);
  return refusal_of([&] { Checkpoint::open(folder.path()); });
}

TEST(CaseD01, AMissingShardIsNamedBeforeAnythingStarts) {
  const TinyFolder folder;
  tiny_model(m0_channel()).write(folder.path(), 3);
  fs::remove(folder.path() / shard_name(2, 3));
  EXPECT_THAT(program_refuses(folder.path()),
              HasSubstr("1 of them are missing: " + shard_name(2, 3)));
}

TEST(CaseD02, AStrayFileBesideTheShardsIsNamedAndNotRead) {
  const TinyFolder folder;
  const std::vector<int32_t> ids = some_ids(5);
  tiny_model(m0_channel()).write(folder.path(), 3);
  const auto before = our_logprobs(folder.path(), ids);

  const TinyFolder other;
  TinyModel model = m0_channel();
  model.seed = 99;
  tiny_model(model).write(other.path());
  fs::copy_file(other.path() / "model.safetensors", folder.path() / "model.safetensors");
  EXPECT_THAT(all_notes(planned(folder.path())),
              HasSubstr("not read: model.safetensors (the index does not name it)"));
  EXPECT_EQ(our_logprobs(folder.path(), ids), before);
}

TEST(CaseD04, AStaleIndexListsTheFilesThatAreMissing) {
  const TinyFolder folder;
  tiny_model(m0_channel()).write(folder.path(), 10);
  const fs::path path = folder.path() / "model.safetensors.index.json";
  json index = json::parse(read_text_file(path, 1 << 20));
  for (json& file : index["weight_map"]) {
    std::string name = file;
    name.replace(name.find("-of-00010"), 9, "-of-00020");
    file = name;
  }
  write_bytes(path, index.dump());
  EXPECT_THAT(program_refuses(folder.path()),
              AllOf(HasSubstr("names 10 files, 10 of them are missing: "),
                    HasSubstr(shard_name(1, 20)), HasSubstr("and 7 more")));
}

TEST(CaseD05, ATruncatedFileIsNamedWithTheBytesExpectedAndFound) {
  const TinyFolder folder;
  tiny_model(m0_channel()).write(folder.path());
  const fs::path path = folder.path() / "model.safetensors";
  const auto size = fs::file_size(path);
  const std::string whole = read_text_file(path, size);
  const auto said = [&](uintmax_t bytes) {
    fs::resize_file(path, bytes);
    const std::string err = program_refuses(folder.path());
    write_bytes(path, whole);
    EXPECT_THAT(err, HasSubstr(path.string()));
    EXPECT_EQ(std::count(err.begin(), err.end(), '\n'), 2) << err;  // the message and its hint
    return err;
  };
  EXPECT_THAT(said(0), HasSubstr("has 0 bytes, expected at least 8"));
  EXPECT_THAT(said(4), HasSubstr("has 4 bytes, expected at least 8"));
  EXPECT_THAT(said(100), AllOf(HasSubstr("is truncated: the header needs"),
                               HasSubstr("bytes, the file has 100")));
  EXPECT_THAT(said(size - 1000), HasSubstr(fmt::format("is truncated: expected {} bytes, found {}",
                                                       size, size - 1000)));
}

TEST(CaseD06, ATensorGivenTwiceIsNamed) {
  const std::string entries = "{" + header_entry("model.norm.weight", "F32", "[2]", "[0,8]") + "," +
                              header_entry("model.norm.weight", "F32", "[2]", "[8,16]") + "}";
  EXPECT_THAT(open_refuses(safetensors_bytes(entries, 16)),
              HasSubstr("duplicate tensor name \"model.norm.weight\""));
}

TEST(CaseD06, ATensorInTwoShardsIsTakenWhenItsBytesAreEqual) {
  const std::string header = "{" + header_entry("model.norm.weight", "F32", "[2]", "[0,8]") + "}";
  const TinyFolder folder;
  write_bytes(folder.path() / "config.json", "{}");
  std::string file = safetensors_bytes(header, 8);
  write_bytes(folder.path() / "a.safetensors", file);
  write_bytes(folder.path() / "b.safetensors", file);
  const Checkpoint checkpoint = Checkpoint::open(folder.path());
  EXPECT_EQ(checkpoint.tensors().size(), 1U);
  EXPECT_THAT(checkpoint.notes(),
              Contains(HasSubstr("is in more than one file, with equal bytes")));

  file.back() = 'y';
  write_bytes(folder.path() / "b.safetensors", file);
  EXPECT_THAT(refusal_of([&] { Checkpoint::open(folder.path()); }),
              AllOf(HasSubstr("duplicate tensor \"model.norm.weight\""), HasSubstr("a.safetensors"),
                    HasSubstr("b.safetensors hold different ones")));
}

TEST(CaseD07, OverlapsAndHolesAreRefusedAnyOrderIsTaken) {
  const auto header = [](const std::string& first, const std::string& second) {
    return "{" + header_entry("a", "F32", "[16]", first) + "," +
           header_entry("b", "F32", "[16]", second) + "}";
  };
  EXPECT_THAT(open_refuses(safetensors_bytes(header("[0,64]", "[48,112]"), 112)),
              HasSubstr("tensors \"a\" and \"b\" overlap: [0, 64] and [48, 112]"));
  EXPECT_THAT(open_refuses(safetensors_bytes(header("[0,64]", "[128,192]"), 192)),
              HasSubstr("a hole of 64 bytes at data offset 64, before tensor \"b\""));
  const TinyFolder folder;
  write_bytes(folder.path() / "config.json", "{}");
  write_bytes(folder.path() / "model.safetensors",
              safetensors_bytes(header("[64,128]", "[0,64]"), 128));
  EXPECT_EQ(Checkpoint::open(folder.path()).tensors()[0].name, "b");
}

TEST(CaseD09, AnUnknownDtypeAndARangePast62BitsAreNamed) {
  const std::string range = "[9223372036854775808,9223372036854775812]";
  EXPECT_THAT(open_refuses(safetensors_bytes("{" + header_entry("a", "F7", "[4]", range) + "}", 8)),
              HasSubstr("dtype \"F7\" is not one of"));
  EXPECT_THAT(
      open_refuses(safetensors_bytes("{" + header_entry("a", "F8_E4M3", "[4]", range) + "}", 8)),
      HasSubstr("[9223372036854775808, 9223372036854775812] is not a range within 2^62 bytes"));
}

TEST(CaseD10, OffsetsThatAreNoRangeOfTheTensorAreRefused) {
  const auto said = [](const std::string& shape, const std::string& offsets) {
    return open_refuses(
        safetensors_bytes("{" + header_entry("a", "F32", shape, offsets) + "}", 64));
  };
  EXPECT_THAT(said("[8]", "[-32,0]"), HasSubstr("data_offsets is [-32,0], expected two whole"));
  EXPECT_THAT(said("[4]", "[64,48]"), HasSubstr("data_offsets [64, 48] is not a range"));
  EXPECT_THAT(said("[900,900]", "[0,8]"),
              HasSubstr("F32 [900, 900] needs 3240000 bytes, data_offsets [0, 8] hold 8"));
  EXPECT_THAT(said("[8589934592,8589934592]", "[0,64]"), HasSubstr("needs over 2^62 bytes"));
}

// A model of 120 MB in 8 bits, all zeros: files that take no room on the disk.
void write_large_model(const fs::path& dir) {
  constexpr int64_t kHidden = 1024, kMlp = 4096, kLayers = 7, kVocab = 512;
  const json weights{{"num_bits", 8}, {"type", "float"}, {"strategy", "channel"}};
  const json inputs{{"num_bits", 8}, {"type", "float"}, {"strategy", "token"}, {"dynamic", true}};
  const json group{{"targets", {"Linear"}}, {"weights", weights}, {"input_activations", inputs}};
  const json config{{"architectures", {"LlamaForCausalLM"}},
                    {"model_type", "llama"},
                    {"hidden_size", kHidden},
                    {"intermediate_size", kMlp},
                    {"num_hidden_layers", kLayers},
                    {"num_attention_heads", 8},
                    {"num_key_value_heads", 8},
                    {"vocab_size", kVocab},
                    {"max_position_embeddings", 64},
                    {"tie_word_embeddings", true},
                    {"quantization_config",
                     {{"quant_method", "compressed-tensors"},
                      {"format", "float-quantized"},
                      {"config_groups", {{"group_0", group}}},
                      {"ignore", {"lm_head"}}}}};
  fs::create_directories(dir);
  write_bytes(dir / "config.json", config.dump());
  std::vector<TensorSpec> specs{
      {"model.embed_tokens.weight", DType::BF16, {kVocab, kHidden}},
      {"model.norm.weight", DType::BF16, {kHidden}},
  };
  const auto linear = [&](const std::string& name, int64_t n, int64_t k) {
    specs.push_back({name + ".weight", DType::F8E4M3, {n, k}});
    specs.push_back({name + ".weight_scale", DType::F32, {n, 1}});
  };
  for (int64_t layer = 0; layer < kLayers; ++layer) {
    const std::string prefix = fmt::format("model.layers.{}.", layer);
    for (const char* name : {"q_proj", "k_proj", "v_proj", "o_proj"}) {
      linear(prefix + "self_attn." + name, kHidden, kHidden);
    }
    linear(prefix + "mlp.gate_proj", kMlp, kHidden);
    linear(prefix + "mlp.up_proj", kMlp, kHidden);
    linear(prefix + "mlp.down_proj", kHidden, kMlp);
    for (const char* name : {"input_layernorm.weight", "post_attention_layernorm.weight"}) {
      specs.push_back({prefix + name, DType::BF16, {kHidden}});
    }
  }
  SafetensorsWriter writer(dir / "model.safetensors", specs);
  for (const TensorSpec& spec : specs) {
    const auto bytes = static_cast<size_t>(spec.shape.elements() * bytes_of(spec.dtype));
    writer.write(spec.name, std::vector<std::byte>(bytes));
  }
  writer.finish();
}

// Weights stay in the mapped file: what a process may allocate bounds everything else it needs.
#if defined(__has_feature)
constexpr bool kSanitized = __has_feature(address_sanitizer);  // clang
#else
constexpr bool kSanitized = false;
#endif

TEST(CaseD14, LoadingTakesNoMemoryForTheWeights) {
  const TinyFolder folder;
  const fs::path dir = folder.path() / "m";
  write_large_model(dir);
  EXPECT_GT(fs::file_size(dir / "model.safetensors"), uintmax_t{110} << 20);
  constexpr int kLimitKib = 64 << 10;  // private and writable, of a model of 117 MiB
  const std::string command =
      fmt::format("ulimit -d {} && '{}' run '{}' --prompt-ids 1,2 -n 2 -t 2 --json >'{}' 2>&1",
                  kLimitKib, OCTET_PROGRAM, dir.string(), (folder.path() / "log").string());
  if (kSanitized) GTEST_SKIP() << "the sanitizer's own memory is over the limit";
  EXPECT_EQ(std::system(command.c_str()), 0) << read_text_file(folder.path() / "log", 1 << 20);
}

TEST(CaseD14, TwoRanksAreRefusedByName) {
  const TinyFolder folder;
  tiny_model(m0_channel()).write(folder.path(), 4);
  const Ran ran =
      run_octet({"run", folder.path().string(), "--prompt-ids", "1", "-n", "1", "-tp", "2"});
  EXPECT_EQ(ran.status, 3);
  EXPECT_THAT(ran.err, HasSubstr("-tp 2: this command runs one rank"));
}

TEST(CaseD15, AFileThatShrinksWhileItIsUsedEndsWithAMessage) {
  const TinyFolder folder;
  const fs::path path = folder.path() / "model.safetensors";
  write_bytes(path, std::string(1 << 20, 'x'));
  const auto read_after_cut = [&] {
    report_mapped_faults();
    const MappedFile file(path);
    fs::resize_file(path, 4096);
    const volatile std::byte* last = &file.bytes()[file.bytes().size() - 1];
    std::exit(std::to_integer<int>(*last));
  };
  EXPECT_EXIT(read_after_cut(), ::testing::ExitedWithCode(4),
              "octet: .*model.safetensors became shorter, or its disk failed");
}

TEST(CaseD16, ParametersThatNothingFillsAreNamed) {
  for (const char* name :
       {"model.layers.1.mlp.up_proj.weight_scale", "model.layers.0.input_layernorm.weight",
        "model.layers.0.self_attn.q_proj.weight"}) {
    const TinyFolder folder;
    TinyCheckpoint checkpoint = tiny_model(m0_channel());
    checkpoint.remove(name);
    checkpoint.write(folder.path());
    const std::string module = std::string(name).substr(0, std::string(name).rfind('.'));
    EXPECT_THAT(program_refuses(folder.path()), HasSubstr(module));
  }
}

TEST(CaseD17, EveryEightBitDtypeIsServedOrRefusedByName) {
  LayerQuant e5m2 = tiny_fp8_weight_only();
  e5m2.weight.dtype = DType::F8E5M2;
  LayerQuant e8m0 = tiny_mxfp8();
  e8m0.input.reset();  // inputs that are quantised make the comparison coarser
  for (const LayerQuant& quant : {tiny_fp8_weight_only(), e5m2, e8m0}) {
    const TinyFolder folder;
    const TinyModel model = m0(quant);
    const TinyCheckpoint checkpoint = tiny_model(model);
    checkpoint.write(folder.path());
    const Prepared prepared = planned(folder.path());
    EXPECT_TRUE(prepared.plan.failures.empty()) << to_string(quant.weight);
    EXPECT_EQ(quant_of(prepared, "model.layers.0.mlp.up_proj").weight.dtype, quant.weight.dtype);
    expect_reference(folder.path(), checkpoint, model);
  }
}

TEST(CaseD17, IntegersAreRefusedBeforeAnythingIsComputed) {
  const TinyFolder folder;
  TinyCheckpoint checkpoint = tiny_model(m0_channel());
  const std::string name = "model.layers.0.mlp.up_proj.weight";
  checkpoint.remove(name);
  checkpoint.add(name, DType::I8, {384, 256}, std::vector<std::byte>(384 * 256));
  checkpoint.write(folder.path());
  EXPECT_THAT(program_refuses(folder.path()), AllOf(HasSubstr(name), HasSubstr("I8")));

  json& groups = checkpoint.config()["quantization_config"]["config_groups"];
  for (json& group : groups) group["weights"]["type"] = "int";
  checkpoint.write(folder.path());
  EXPECT_THAT(program_refuses(folder.path()), AllOf(HasSubstr("weights.type"), HasSubstr("int")));
}

TEST(CaseD19, EveryScaleInTheFilesIsUsed) {
  const TinyFolder folder;
  TinyCheckpoint checkpoint = tiny_model(m0_channel());
  checkpoint.write(folder.path(), 3);
  const Prepared prepared = planned(folder.path());
  int in_headers = 0;
  for (const TensorEntry& entry : prepared.checkpoint.tensors()) {
    in_headers += entry.name.ends_with("_scale") ? 1 : 0;
  }
  int used = 0;
  for (const LinearRecord& record : prepared.records) {
    used += record.view.scales.shape.rank() > 0 ? 1 : 0;
  }
  EXPECT_EQ(in_headers, 14);
  EXPECT_EQ(used, in_headers);
}

TEST(CaseD19, AScaleUnderANameThatNoLayerHasIsFatal) {
  for (const char* name : {"model.layers.0.mlp.gate_up_proj.weight_scale",
                           "model.layers.0.mlp.gate_proj.scale_of_weight_scale",
                           "layers.0.mlp.gate_projection.weight_scale"}) {
    const TinyFolder folder;
    TinyCheckpoint checkpoint = tiny_model(m0_channel());
    checkpoint.rename("model.layers.0.mlp.gate_proj.weight_scale", name);
    checkpoint.write(folder.path());
    EXPECT_THAT(program_refuses(folder.path()), AnyOf(HasSubstr("gate_proj"), HasSubstr(name)));
  }
}

}  // namespace
}  // namespace octet
