#include "tests/cases/case_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "model/decoder.h"

namespace octet {
namespace {

constexpr int32_t kBlocks = 16;

Batch chunk_of(const std::vector<int32_t>& ids, int64_t begin, int64_t end, int64_t vocab) {
  Batch batch;
  for (int64_t t = begin; t < end; ++t) {
    batch.tokens.push_back(ids[static_cast<size_t>(t)]);
    batch.positions.push_back(static_cast<int32_t>(t));
    batch.slots.push_back(t);
    batch.logit_rows.push_back(static_cast<int32_t>(t - begin));
  }
  batch.spans = {{0, static_cast<int32_t>(end - begin), static_cast<int32_t>(begin), 0}};
  batch.block_tables.resize(kBlocks);
  std::iota(batch.block_tables.begin(), batch.block_tables.end(), 0);
  batch.table_stride = kBlocks;
  batch.top_logprobs = vocab;
  return batch;
}

// Differences of logits as parts of their range: of float32 sums alone, and of sums with a code of
// an activation that lay between two and was rounded to the other.
constexpr double kExact = 1e-4;
constexpr double kOneCode = 0.05;

double distance(const std::vector<std::vector<float>>& ours,
                const std::vector<std::vector<double>>& theirs) {
  double largest = ours.size() == theirs.size() ? 0 : INFINITY;
  for (size_t row = 0; row < std::min(ours.size(), theirs.size()); ++row) {
    const auto [low, high] = std::minmax_element(theirs[row].begin(), theirs[row].end());
    double sum = 0;
    for (const double logit : theirs[row]) sum += std::exp(logit - *high);
    for (size_t i = 0; i < theirs[row].size(); ++i) {
      const double expected = theirs[row][i] - *high - std::log(sum);
      const double difference = std::fabs(static_cast<double>(ours[row][i]) - expected);
      // Written so that NaN is a difference.
      if (!(difference <= largest * (*high - *low))) largest = difference / (*high - *low);
    }
  }
  return largest;
}

}  // namespace

TinyModel m0(LayerQuant quant) {
  TinyModel model;
  model.quant = quant;
  return model;
}
TinyModel m0_tensor() {
  return m0(tiny_fp8_static(DType::F32));
}
TinyModel m0_channel() {
  return m0(tiny_fp8_dynamic(DType::F32));
}
TinyModel m0_block() {
  TinyModel model = m0(tiny_fp8_block(128, 128, DType::F32));
  model.dialect = TinyDialect::Fp8;
  return model;
}
TinyModel m0_ct_block() {
  return m0(tiny_fp8_block(128, 128, DType::F32));
}

void store_as_phi3(TinyCheckpoint& checkpoint, int64_t layers) {
  for (int64_t i = 0; i < layers; ++i) {
    const std::string layer = fmt::format("model.layers.{}.", i);
    const std::string attention = layer + "self_attn.";
    checkpoint.join(std::vector{attention + "q_proj", attention + "k_proj", attention + "v_proj"},
                    attention + "qkv_proj");
    checkpoint.join(std::vector{layer + "mlp.gate_proj", layer + "mlp.up_proj"},
                    layer + "mlp.gate_up_proj");
  }
  checkpoint.config()["architectures"] = {"Phi3ForCausalLM"};
  checkpoint.config()["model_type"] = "phi3";
}

std::vector<int32_t> some_ids(size_t count, int64_t vocab, uint64_t seed) {
  TinyRandom random(seed);
  std::vector<int32_t> ids;
  for (size_t i = 0; i < count; ++i)
    ids.push_back(static_cast<int32_t>(random.bits() % static_cast<uint64_t>(vocab)));
  return ids;
}

Prepared planned(const std::filesystem::path& dir, PlanOptions options) {
  DeviceInfo info = probe_cpu();
  info.threads = 2;
  options.policy.carrier = Carrier::F32;
  return prepare(dir, false, info, std::move(options));
}

std::vector<std::vector<float>> our_logprobs(const std::filesystem::path& dir,
                                             const std::vector<int32_t>& ids, PlanOptions options,
                                             int64_t chunk) {
  Prepared prepared = planned(dir, std::move(options));
  const auto device = make_cpu_device(prepared.plan.device, 2);
  const auto model = load(prepared.checkpoint, prepared.config, prepared.description,
                          prepared.records, std::move(prepared.plan), *device);
  KvCache cache(model->plan.kv, kBlocks, *device);
  const auto self = make_self_communicator();
  Decoder decoder(model, cache, *self, *device);
  const int64_t vocab = model->config.dims.vocab;
  std::vector<std::vector<float>> rows;
  const auto count = static_cast<int64_t>(ids.size());
  for (int64_t begin = 0; begin < count; begin += chunk) {
    const StepResult result =
        decoder.forward(chunk_of(ids, begin, std::min(begin + chunk, count), vocab));
    for (size_t i = 0; i < result.top_ids.size(); ++i) {
      if (i % static_cast<size_t>(vocab) == 0) rows.emplace_back(static_cast<size_t>(vocab));
      rows.back()[static_cast<size_t>(result.top_ids[i])] = result.top_logprobs[i];
    }
  }
  return rows;
}

void expect_reference(const std::filesystem::path& dir, const TinyCheckpoint& checkpoint,
                      const TinyModel& model, const ReferenceDetails& details, size_t tokens) {
  constexpr uint64_t kTries = 6;
  double best = INFINITY;
  for (uint64_t seed = 1; seed <= kTries && best > kExact; ++seed) {
    const std::vector<int32_t> ids = some_ids(tokens, model.vocab, seed);
    const double difference =
        distance(our_logprobs(dir, ids), reference_logits(checkpoint, model, ids, details));
    ASSERT_LT(difference, kOneCode) << "ids of seed " << seed;
    best = std::min(best, difference);
  }
  EXPECT_LT(best, kExact) << "the best of " << kTries << " sequences";
}

std::string refusal_of(const std::function<void()>& act, Code code) {
  try {
    act();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.message();
    return error.message() + "\n" + error.hint();
  }
  ADD_FAILURE() << "it was taken";
  return "";
}

const LayerQuant& quant_of(const Prepared& prepared, const std::string& module) {
  for (const LinearRecord& record : prepared.records) {
    if (record.module == module) return record.quant;
  }
  throw_error(Code::Bug, "no module " + module);
}

Stored count_stored(const Prepared& prepared) {
  Stored stored;
  for (const LinearRecord& record : prepared.records)
    ++(is_f8(record.quant.weight.dtype) ? stored.quantised : stored.plain);
  return stored;
}

std::string all_notes(const Prepared& prepared) {
  std::string text;
  for (const std::string& note : prepared.plan.notes) text += note + "\n";
  return text;
}

}  // namespace octet
