// `octet plan` as a process: text and JSON, ranks, forced and disabled kernels, devices, headers.
#include <gmock/gmock.h>

#include <algorithm>

#include "tests/integration/process.h"
#include "tests/integration/tiny_models.h"

namespace octet {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Words = std::vector<std::string>;

constexpr const char* kDynamic = "testing/data/fp8/ct-dynamic";
constexpr const char* kReference = "cpu.linear.w8a8.f8.ref";

Ran plan(const Words& words, int status = 0) {
  Words all{"plan"};
  all.insert(all.end(), words.begin(), words.end());
  const Ran ran = run_octet(all);
  EXPECT_EQ(ran.status, status) << describe_run(all, ran);
  return ran;
}

json plan_json(Words words, int status = 0) {
  words.emplace_back("--json");
  return json::parse(plan(words, status).out);
}

const json& layer(const json& plan, const std::string& part) {
  for (const json& group : plan["linear"]) {
    if (group["layers"].get<std::string>().find(part) != std::string::npos) return group;
  }
  throw std::runtime_error("the plan has no layer " + part);
}

// The kernels of the CPU for one operation, or for all.
std::vector<std::string> kernel_names(const std::string& op) {
  std::vector<std::string> names;
  const json rows = json::parse(run_octet({"kernels", "--json"}).out);
  for (const json& row : rows) {
    if (row["device"] != "cpu") continue;
    if (op.empty() || row["op"] == op) names.push_back(row["name"]);
  }
  return names;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ",") + word;
  return text;
}

TEST(PlanCommand, ShowsTheChosenTheOthersAndEveryReason) {
  const Ran ran = plan({kDynamic, "--max-isa", "baseline"});
  EXPECT_THAT(ran.out, HasSubstr("model.layers.*.self_attn.q_proj  x2  N=64 K=64"));
  EXPECT_THAT(ran.out, HasSubstr("weights f8e4m3/row/bf16/static, input f8e4m3/row/f32/dynamic"));
  EXPECT_THAT(ran.out, HasSubstr("* w8a8  cpu.linear.w8a8.f8.ref"));
  EXPECT_THAT(ran.out, HasSubstr("+ w8a16 cpu.linear.w8a16.f8.ref"));
  EXPECT_THAT(ran.out, HasSubstr("\n  - weights are fp8\n        cpu.linear.plain."));
  EXPECT_THAT(ran.out, HasSubstr("cpu.linear.plain.float.avx2, cpu.linear.plain.float.ref\n"));
  EXPECT_THAT(ran.out, AllOf(HasSubstr("KV"), HasSubstr("scratch"), HasSubstr("of context fit")));
  EXPECT_THAT(ran.err, IsEmpty());
}

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(PlanCommand, ADeviceWithoutKernelsIsOneLine) {
  const Ran ran = plan({kDynamic, "--device", "profiles/h200.json"}, 3);
  EXPECT_THAT(ran.err, AllOf(HasSubstr("has no kernels for cuda"), HasSubstr("cpu or opencl")));
  EXPECT_LE(std::count(ran.err.begin(), ran.err.end(), '\n'), 4) << ran.err;
}

TEST(PlanCommand, WeightsInAnotherLayoutAreCounted) {
  const auto bytes = [](const char* device) {
    return plan_json({kDynamic, "--device", device})["bytes"];
  };
  const json cpu = bytes("profiles/cpu-avx2.json"), gpu = bytes("profiles/b580.json");
  // The codes are larger than the scales beside them, and are copied into panels there.
  EXPECT_LT(cpu["copied"].get<int64_t>(), cpu["weights"].get<int64_t>() / 4);
  EXPECT_GT(gpu["copied"].get<int64_t>(), 4 * cpu["copied"].get<int64_t>());
}

TEST(PlanCommand, InstructionSetsAreThoseOfCpus) {
  const Ran ran = plan({kDynamic, "--device", "profiles/b580.json", "--max-isa", "avx2"}, 2);
  EXPECT_THAT(ran.err, AllOf(HasSubstr("--max-isa avx2"), HasSubstr("for --device cpu alone")));
}

TEST(PlanCommand, LayersWithTheSameDecisionShareIt) {
  const std::string out = plan({kDynamic}).out;
  EXPECT_EQ(count_of(out, "- weights are fp8\n"), 1U) << out;      // seven layers of the decoder
  EXPECT_EQ(count_of(out, "- weights are not fp8\n"), 1U) << out;  // the head
  EXPECT_THAT(out, ContainsRegex("self_attn.q_proj  x2  N=64 K=64\n"
                                 "model\\.layers\\..\\.self_attn\\.k_proj  x2  N=32 K=64\n"));
  // A layer that is decided otherwise stands alone, with its reasons.
  const std::string forced = plan({kDynamic, "--kernel", std::string("up_proj=") + kReference}).out;
  EXPECT_EQ(count_of(forced, std::string("- --kernel asks for ") + kReference), 1U) << forced;
  EXPECT_EQ(count_of(forced, "- weights are fp8\n"), 2U) << forced;
}

TEST(PlanCommand, JsonSaysTheSameAsTheText) {
  const json data = plan_json({kDynamic, "--max-isa", "baseline"});
  EXPECT_EQ(data["model"], "ct-dynamic");
  EXPECT_EQ(data["architecture"], "LlamaForCausalLM");
  EXPECT_TRUE(data["runnable"]);
  EXPECT_EQ(data["linear"].size(), 8U);
  const json& q = layer(data, "q_proj");
  EXPECT_EQ(q["count"], 2);
  EXPECT_EQ(q["n"], 64);
  EXPECT_EQ(q["k"], 64);
  EXPECT_EQ(q["scheme"], "w8a8");
  EXPECT_EQ(q["kernel"], kReference);
  const std::string text = plan({kDynamic, "--max-isa", "baseline"}).out;
  for (const json& group : data["linear"]) {
    EXPECT_EQ(group["attempts"].size(), kernel_names("linear").size()) << group["layers"];
    for (const json& attempt : group["attempts"]) {
      EXPECT_THAT(text, HasSubstr(attempt["kernel"].get<std::string>()));
      for (const std::string reason : attempt["refusals"]) EXPECT_THAT(text, HasSubstr(reason));
    }
  }
  // Two layers of k and v: 2 * 2 kv_heads * 16 wide * 2 bytes of bf16.
  EXPECT_EQ(data["bytes"]["kv_per_token"], 2 * 2 * 2 * 16 * 2);
  EXPECT_EQ(data["max_model_len"], 64);
  EXPECT_GT(data["fits_tokens"].get<int64_t>(), 64);
}

TEST(PlanCommand, ChoosesWhatTheCheckpointDeclaresAndPreferMovesIt) {
  EXPECT_EQ(layer(plan_json({kDynamic}), "q_proj")["scheme"], "w8a8");
  EXPECT_EQ(layer(plan_json({kDynamic, "--prefer", "w8a16"}), "q_proj")["scheme"], "w8a16");
  const json weight_only = plan_json({"testing/data/fp8/ct-weight-only", "--prefer", "w8a8"});
  EXPECT_EQ(layer(weight_only, "q_proj")["scheme"], "w8a16");
}

TEST(PlanCommand, Float32AdmitsOnlyFloat32Carriers) {
  const json data = plan_json({kDynamic, "--prefer", "w8a16", "--dtype", "float32"});
  EXPECT_EQ(data["kv_dtype"], "f32");
  for (const json& group : data["linear"]) {
    EXPECT_THAT(group["kernel"].get<std::string>(), Not(HasSubstr("bf16")));
  }
}

TEST(PlanCommand, SharesShapesAndBytesByRank) {
  const json one = plan_json({kDynamic});
  const json two = plan_json({kDynamic, "-tp", "2"});
  EXPECT_EQ(two["ranks"], 2);
  EXPECT_EQ(two["ranks_requested"], 2);
  EXPECT_EQ(two["ranks_possible"], json({1, 2}));
  EXPECT_EQ(layer(two, "q_proj")["n"], 32);
  EXPECT_EQ(layer(two, "q_proj")["k"], 64);
  EXPECT_EQ(layer(two, "o_proj")["n"], 64);
  EXPECT_EQ(layer(two, "o_proj")["k"], 32);
  EXPECT_EQ(layer(two, "down_proj")["k"], 48);
  EXPECT_EQ(layer(two, "lm_head")["n"], 24);
  EXPECT_EQ(two["bytes"]["kv_per_token"].get<int64_t>() * 2,
            one["bytes"]["kv_per_token"].get<int64_t>());
  EXPECT_LT(two["bytes"]["weights"].get<int64_t>(), one["bytes"]["weights"].get<int64_t>());
  EXPECT_EQ(plan_json({kDynamic, "-tp=2"})["linear"], two["linear"]);
}

TEST(PlanCommand, PlansACutThroughABlock) {
  // 384 columns of down_proj in blocks of 128 by two ranks: 192 each, the second begins inside a
  // block.
  const TinyFolder folder;
  TinyModel model;
  model.quant = tiny_fp8_block();
  tiny_model(model).write(folder.path());
  const json data = plan_json({folder.path().string(), "-tp", "2"});
  EXPECT_EQ(layer(data, "down_proj")["k"], 192);
  EXPECT_EQ(layer(data, "gate_proj")["n"], 192);
  EXPECT_TRUE(data["runnable"]);
}

TEST(PlanCommand, RanksThatCannotShareTheModelGetAPlanOfOneRankAndTheNumbersThatCan) {
  // 4 heads, 2 key-value heads, 96 MLP columns, 48 vocabulary entries.
  const Ran ran = plan({kDynamic, "-tp", "3"}, 3);
  EXPECT_THAT(ran.err, AllOf(HasSubstr("-tp 3"), HasSubstr("ct-dynamic"), HasSubstr("4 heads"),
                             HasSubstr("2 key-value heads"), Not(HasSubstr("MLP")),
                             HasSubstr("can share this model: 1, 2\n")));
  EXPECT_THAT(ran.out, HasSubstr("self_attn.q_proj  x2  N=64 K=64"));
  const json data = plan_json({kDynamic, "-tp", "3"}, 3);
  EXPECT_EQ(data["ranks"], 1);
  EXPECT_EQ(data["ranks_requested"], 3);
  EXPECT_EQ(data["ranks_possible"], json({1, 2}));
  EXPECT_EQ(data["linear"], plan_json({kDynamic})["linear"]);
  EXPECT_EQ(data["bytes"]["scratch"], plan_json({kDynamic})["bytes"]["scratch"]);
  EXPECT_FALSE(data["runnable"]);
}

TEST(PlanCommand, SaysOnceWhichInputScalesRanksCut) {
  const auto notes = [](const std::string& model) {
    const json data = plan_json({model, "-tp", "2"});
    std::vector<std::string> lines;
    for (const std::string note : data["notes"]) {
      if (note.find("each rank scales its part anew") != std::string::npos) lines.push_back(note);
    }
    return lines;
  };
  const TinyFolder folder;
  TinyModel model;  // down_proj: 384 columns, 192 of a rank
  const auto write = [&](const char* name, const LayerQuant& quant) {
    model.quant = quant;
    tiny_model(model).write(folder.path() / name);
    return (folder.path() / name).string();
  };
  EXPECT_THAT(notes(write("groups", tiny_fp8_block())),
              ElementsAre(AllOf(HasSubstr("down_proj"), Not(HasSubstr("o_proj")))));
  EXPECT_THAT(notes(write("tokens", tiny_fp8_dynamic())),
              ElementsAre(AllOf(HasSubstr("down_proj"), HasSubstr("o_proj"))));
  EXPECT_THAT(notes(write("fitting", tiny_fp8_block(64, 64))), IsEmpty());
  EXPECT_THAT(notes(write("static", tiny_fp8_static())), IsEmpty());
  EXPECT_THAT(notes(write("weights", tiny_fp8_weight_only())), IsEmpty());
}

TEST(PlanCommand, ReadsShardsThatEndAfterTheirHeaderOnlyWhenAsked) {
  const TinyFolder folder;
  std::filesystem::copy(kDynamic, folder.path());
  cut_after_header(folder.path() / "model.safetensors");
  const std::string cut = folder.path().string();
  const Ran refused = plan({cut}, 2);
  EXPECT_THAT(refused.err, HasSubstr("model.safetensors"));
  const json data = plan_json({cut, "--headers-only"});
  EXPECT_EQ(data["linear"], plan_json({kDynamic})["linear"]);
}

TEST(PlanCommand, BindsTheLayersThatAForcedKernelTakes) {
  const json data = plan_json({kDynamic, "--kernel", kReference});
  EXPECT_TRUE(layer(data, "q_proj")["forced"]);
  EXPECT_EQ(layer(data, "q_proj")["kernel"], kReference);
  EXPECT_FALSE(layer(data, "lm_head")["forced"]);  // bf16: resolved as usual
  EXPECT_THAT(plan({kDynamic, "--kernel", kReference}).out, HasSubstr("(--kernel)"));
}

TEST(PlanCommand, AnExpressionBindsSomeLayers) {
  const json data =
      plan_json({kDynamic, "--kernel", std::string("layers\\.1\\..*q_proj=") + kReference});
  int forced = 0;
  for (const json& group : data["linear"]) {
    if (!group["forced"]) continue;
    ++forced;
    EXPECT_THAT(group["modules"].get<Words>(), ElementsAre("model.layers.1.self_attn.q_proj"));
  }
  EXPECT_EQ(forced, 1);
}

TEST(PlanCommand, ABoundLayerThatCannotRunIsExit3WithAllReasons) {
  const Ran ran = plan({kDynamic, "--kernel", kReference, "--disable", kReference}, 3);
  EXPECT_THAT(ran.err, AllOf(HasSubstr("cannot plan model.layers.*.self_attn.q_proj"),
                             HasSubstr("disabled by --disable"), HasSubstr("--kernel"),
                             HasSubstr("\n  try: leave out --disable or --kernel\n")));
  EXPECT_THAT(ran.out, HasSubstr("operations"));  // the plan is printed all the same
  const Ran weights = plan({"testing/data/fp8/ct-weight-only", "--kernel", kReference}, 3);
  EXPECT_THAT(weights.err, HasSubstr(kReference));
}

TEST(PlanCommand, AFailureNamesTheFlagsThatWereGivenAndEachKernelOnce) {
  const auto failure = [](const Words& flags) {
    Words words{kDynamic};
    words.insert(words.end(), flags.begin(), flags.end());
    const json failures = plan_json(words, 3)["failures"];
    return failures.at(0).get<std::string>();
  };
  // A kernel of a higher instruction set than the one admitted.
  const std::string isa = failure({"--kernel", "cpu.linear.w8a8.f8.avx512", "--max-isa", "avx2"});
  EXPECT_THAT(isa, HasSubstr("\n  try: leave out --kernel or --max-isa"));
  for (const std::string& name : kernel_names("linear"))
    EXPECT_EQ(count_of(isa, " " + name + "  "), 1U) << isa;
  EXPECT_THAT(isa, ContainsRegex("- plain cpu\\.linear\\.plain\\.float\\.avx2  weights are fp8; "
                                 "--kernel asks for cpu\\.linear\\.w8a8\\.f8\\.avx512\n"));
  const std::string all = joined(kernel_names("linear"));
  EXPECT_THAT(failure({"--disable", all}), HasSubstr("\n  try: leave out --disable"));
  EXPECT_THAT(failure({"--disable", all, "--dtype", "float32", "--max-isa", "baseline"}),
              HasSubstr("\n  try: leave out --disable, --max-isa or --dtype"));
}

TEST(PlanCommand, NothingBoundIsExit2) {
  const Ran ran = plan({"testing/data/archs/llama-plain", "--kernel", kReference}, 2);
  EXPECT_THAT(ran.err, AllOf(HasSubstr(kReference), HasSubstr("binds no layer")));
  const Ran regex = plan({kDynamic, "--kernel", std::string("no_such_layer=") + kReference}, 2);
  EXPECT_THAT(regex.err, AllOf(HasSubstr("\"no_such_layer\""), HasSubstr("no layer has a name"),
                               HasSubstr("model.layers.0.self_attn.q_proj"), HasSubstr("lm_head")));
  // A rule that binds nothing is an error beside one that does.
  plan({kDynamic, "--kernel", kReference, "--kernel", std::string("zzz=") + kReference}, 2);
  const Ran other = plan({kDynamic, "--kernel", "cpu.norm.ref"}, 2);
  EXPECT_THAT(other.err, HasSubstr("not a kernel of linear layers"));
}

TEST(PlanCommand, KernelRulesThatAreNoneSayTheForm) {
  for (const std::string& rule :
       {std::string(), std::string("=") + kReference, std::string("q=")}) {
    const Ran ran = plan({kDynamic, "--kernel", rule}, 2);
    EXPECT_THAT(ran.err,
                AllOf(HasSubstr("--kernel \"" + rule + "\""), HasSubstr("[LAYER-REGEX=]NAME")));
  }
}

TEST(PlanCommand, DisablingEveryKernelIsExit3NamingEach) {
  const std::vector<std::string> linear = kernel_names("linear");
  ASSERT_FALSE(linear.empty());
  const Ran ran = plan({kDynamic, "--disable", joined(linear)}, 3);
  for (const std::string& name : linear) EXPECT_THAT(ran.err, HasSubstr(name));
  const Ran none = plan({kDynamic, "--disable", joined(kernel_names(""))}, 3);
  for (const std::string& name : kernel_names("attention")) EXPECT_THAT(none.err, HasSubstr(name));
}

TEST(PlanCommand, UnknownNamesAreExit2) {
  EXPECT_THAT(plan({kDynamic, "--kernel", "nope"}, 2).err, HasSubstr("nope"));
  EXPECT_THAT(plan({kDynamic, "--disable", "nope"}, 2).err, HasSubstr("nope"));
  EXPECT_THAT(plan({kDynamic, "--max-isa", "mmx"}, 2).err, HasSubstr("mmx"));
  EXPECT_THAT(plan({kDynamic, "--kernel", std::string("(=") + kReference}, 2).err,
              HasSubstr("does not compile"));
  EXPECT_THAT(plan({kDynamic, "--device", "/no/such/device.json"}, 2).err,
              HasSubstr("/no/such/device.json"));
  EXPECT_THAT(plan({"/no/such/model"}, 2).err, HasSubstr("/no/such/model"));
}

TEST(PlanCommand, MaxIsaLeavesHigherKernelsOut) {
  const json data = plan_json({kDynamic, "--max-isa", "baseline"});
  for (const json& group : data["linear"]) {
    EXPECT_THAT(group["kernel"].get<std::string>(), HasSubstr(".ref"));
  }
  EXPECT_TRUE(data["device"]["features"].empty());
}

TEST(PlanCommand, PlansForAProfileAndSaysWhenItDoesNotFit) {
  const TinyFolder folder;
  const std::string path = (folder.path() / "device.json").string();
  json profile = json::parse(run_octet({"probe", "--json"}).out);
  write_bytes(path, profile.dump());
  const json here = plan_json({kDynamic});
  EXPECT_EQ(plan_json({kDynamic, "--device", path})["linear"], here["linear"]);

  profile["name"] = "a small device";
  profile["memory_bytes"] = 1000;
  write_bytes(path, profile.dump());
  const Ran ran = plan({kDynamic, "--device", path}, 3);
  EXPECT_THAT(ran.err,
              AllOf(HasSubstr("does not fit"), HasSubstr("a small device"),
                    HasSubstr("has 1.00 kB (1000 bytes)"), HasSubstr("no token of context fits")));
  EXPECT_THAT(ran.out, HasSubstr("* w8a8"));  // the kernels are printed all the same
  const json data = plan_json({kDynamic, "--device", path}, 3);
  EXPECT_FALSE(data["runnable"]);
  EXPECT_TRUE(data["linear"][0]["kernel"].is_string());
}

TEST(PlanCommand, NamesOfFilesDoNotReachTheTerminalAsTheyAre) {
  const TinyFolder folder;
  const std::string path = (folder.path() / "device.json").string();
  json profile = json::parse(run_octet({"probe", "--json"}).out);
  profile["name"] = "evil\x1b[31m\n\xc2\x9b name";
  write_bytes(path, profile.dump());
  const Ran ran = plan({kDynamic, "--device", path});
  EXPECT_THAT(ran.out, AllOf(HasSubstr("\"evil\\x1b[31m\\x0a\\u009b name\""),
                             Not(HasSubstr("\x1b")), Not(HasSubstr("\xc2\x9b"))));
  EXPECT_EQ(plan_json({kDynamic, "--device", path})["device"]["name"], profile["name"]);
  const Ran failed = plan({kDynamic, "--device", path, "--max-model-len", "1g"}, 3);
  EXPECT_THAT(failed.err, AllOf(HasSubstr("evil\\x1b[31m"), Not(HasSubstr("\x1b"))));

  // A folder whose name is no UTF-8: JSON is UTF-8 all the same.
  const auto odd = folder.path() / "odd\xff\x1b[1m";
  std::filesystem::copy(kDynamic, odd);
  EXPECT_THAT(plan({odd.string()}).out,
              AllOf(HasSubstr("\\x1b[1m: Llama"), Not(HasSubstr("\x1b"))));
  EXPECT_EQ(plan_json({odd.string()})["model"], "odd\xef\xbf\xbd\x1b[1m");
}

TEST(PlanCommand, ShortensTheContextToWhatFits) {
  const TinyFolder folder;
  const std::string path = (folder.path() / "device.json").string();
  json profile = json::parse(run_octet({"probe", "--json"}).out);
  const json whole = plan_json({kDynamic});
  const int64_t kv = whole["bytes"]["kv_per_token"];
  profile["memory_bytes"] =
      whole["bytes"]["weights"].get<int64_t>() + whole["bytes"]["scratch"].get<int64_t>() + 10 * kv;
  write_bytes(path, profile.dump());
  const json data = plan_json({kDynamic, "--device", path});
  EXPECT_GE(data["max_model_len"].get<int64_t>(), 10);
  EXPECT_LT(data["max_model_len"].get<int64_t>(), 64);
  const Ran refused = plan({kDynamic, "--device", path, "--max-model-len", "64"}, 3);
  const std::string hint = "--max-model-len ";
  const size_t at = refused.err.find("try: " + hint);
  ASSERT_NE(at, std::string::npos) << refused.err;
  const int64_t most = std::stoll(refused.err.substr(at + 5 + hint.size()));
  EXPECT_EQ(most, data["max_model_len"]);
  EXPECT_THAT(refused.out, HasSubstr(std::to_string(most) + " tokens of context fit"));
  plan({kDynamic, "--device", path, "--max-model-len", std::to_string(most)});
  plan({kDynamic, "--device", path, "--max-model-len", std::to_string(most + 1)}, 3);
}

TEST(PlanCommand, TheContextThatFitsIsOneNumberAtEveryLength) {
  // What is free changes from one moment to the next: a profile does not.
  const TinyFolder folder;
  const std::string path = (folder.path() / "device.json").string();
  json profile = json::parse(run_octet({"probe", "--json"}).out);
  profile["memory_bytes"] = 50'000'000;
  write_bytes(path, profile.dump());
  const auto with_length = [&](int64_t length, int status) {
    return plan_json({kDynamic, "--device", path, "--max-model-len", std::to_string(length)},
                     status);
  };
  const int64_t fits = with_length(1, 0)["fits_tokens"];
  ASSERT_GT(fits, 1000);
  for (const int64_t length : {int64_t{64}, fits / 2, fits})
    EXPECT_EQ(with_length(length, 0)["fits_tokens"], fits) << length;
  for (const int64_t length : {fits + 1, 10 * fits}) {
    const json refused = with_length(length, 3);
    EXPECT_EQ(refused["fits_tokens"], fits) << length;
    EXPECT_THAT(refused["failures"][0].get<std::string>(),
                HasSubstr("--max-model-len " + std::to_string(fits) + ", the most that fits"));
  }
}

TEST(PlanCommand, OneTokenIsNotTokens) {
  const Ran ran = plan({kDynamic, "--max-model-len", "1", "--max-num-batched-tokens", "1"});
  EXPECT_THAT(ran.out, AllOf(HasSubstr(" for 1 token\n"), HasSubstr("for steps of 1 token\n")));
  EXPECT_THAT(plan({kDynamic, "-t", "1"}).out, HasSubstr("(1 thread, "));
}

TEST(PlanCommand, TimingGoesToTheStandardError) {
  const Ran ran = plan({kDynamic, "--timing", "--json"});
  EXPECT_THAT(ran.err, HasSubstr(" ms"));
  EXPECT_TRUE(json::parse(ran.out)["runnable"]);
}

TEST(PlanCommand, AnUnknownArchitectureNamesTheKnownOnes) {
  const TinyFolder folder;
  std::filesystem::copy(kDynamic, folder.path());
  json config = read_json(folder.path() / "config.json");
  config["architectures"] = {"MixtralForCausalLM"};
  write_bytes(folder.path() / "config.json", config.dump());
  const Ran ran = plan({folder.path().string()}, 3);
  EXPECT_THAT(ran.err, AllOf(HasSubstr("MixtralForCausalLM"), HasSubstr("LlamaForCausalLM"),
                             HasSubstr("Qwen3ForCausalLM"), HasSubstr("MistralForCausalLM")));
}

}  // namespace
}  // namespace octet
