#include "tests/models/golden.h"

#include <cmath>
#include <cstring>
#include <fstream>
#include <numeric>
#include <stdexcept>

#include "engine/batch_builder.h"

namespace octet {
namespace {

int base64_value(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '+') return 62;
  return c == '/' ? 63 : -1;
}

}  // namespace

nlohmann::json read_golden(const std::filesystem::path& path) {
  std::ifstream file(path);
  if (!file)
    throw std::runtime_error("missing " + path.string() + "; tests run in the source folder");
  return nlohmann::json::parse(file);
}

std::vector<float> floats_from_base64(const std::string& text) {
  std::string bytes;
  uint32_t bits = 0;
  int held = 0;
  for (const char c : text) {
    const int value = base64_value(c);
    if (value < 0) break;
    bits = bits << 6 | static_cast<uint32_t>(value);
    held += 6;
    if (held >= 8) {
      held -= 8;
      bytes.push_back(static_cast<char>(bits >> held & 0xFF));
    }
  }
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

DeviceInfo test_device(const std::string& max_isa) {
  DeviceInfo device = probe_cpu();
  device.features = mask_isa(device.features, max_isa);
  device.threads = 2;
  return device;
}

std::vector<std::string> available_isas() {
  std::vector<std::string> isas;
  Features before;
  for (const char* isa : {"baseline", "avx2", "avx512"}) {
    const Features features = mask_isa(probe_cpu().features, isa);
    if (isas.empty() || !(features == before)) isas.emplace_back(isa);
    before = features;
  }
  return isas;
}

std::vector<std::vector<float>> all_logprobs(const std::filesystem::path& path,
                                             const std::vector<int32_t>& ids,
                                             const DeviceInfo& info, Carrier carrier) {
  PlanOptions options;
  options.policy.carrier = carrier;
  std::vector<int32_t> positions(ids.size());
  std::iota(positions.begin(), positions.end(), 0);
  return logprobs_at(positions, prepare(path, false, info, options), ids, info);
}

std::vector<std::vector<float>> logprobs_at(const std::vector<int32_t>& positions,
                                            Prepared prepared, const std::vector<int32_t>& ids,
                                            const DeviceInfo& info) {
  const auto device = make_cpu_device(info, info.threads);
  const auto model = load(prepared.checkpoint, prepared.config, prepared.description,
                          prepared.records, std::move(prepared.plan), *device);
  const KvSpec& kv = model->plan.kv;
  const auto blocks =
      static_cast<int32_t>((static_cast<int64_t>(ids.size()) + kv.block_size - 1) / kv.block_size);
  KvCache cache(kv, blocks, *device);
  const auto communicator = make_self_communicator();
  Decoder decoder(model, cache, *communicator, *device);

  const auto vocab = static_cast<size_t>(model->config.dims.vocab);
  Batch batch;
  batch.tokens = ids;
  batch.positions.resize(ids.size());
  std::iota(batch.positions.begin(), batch.positions.end(), 0);
  batch.slots.assign(batch.positions.begin(), batch.positions.end());
  batch.logit_rows = positions;
  batch.spans = {{0, static_cast<int32_t>(ids.size()), 0, 0}};
  batch.block_tables.resize(static_cast<size_t>(blocks));
  std::iota(batch.block_tables.begin(), batch.block_tables.end(), 0);
  batch.table_stride = blocks;
  batch.top_logprobs = static_cast<int64_t>(vocab);
  const StepResult result = decoder.forward(batch);
  std::vector<std::vector<float>> rows(positions.size(), std::vector<float>(vocab));
  for (size_t i = 0; i < rows.size() * vocab; ++i) {
    rows[i / vocab][static_cast<size_t>(result.top_ids[i])] = result.top_logprobs[i];
  }
  return rows;
}

std::vector<double> log_softmax(const float* logits, size_t count) {
  double largest = -INFINITY;
  for (size_t i = 0; i < count; ++i) largest = std::max(largest, static_cast<double>(logits[i]));
  double sum = 0;
  for (size_t i = 0; i < count; ++i) sum += std::exp(static_cast<double>(logits[i]) - largest);
  std::vector<double> out(count);
  for (size_t i = 0; i < count; ++i)
    out[i] = static_cast<double>(logits[i]) - largest - std::log(sum);
  return out;
}

}  // namespace octet
