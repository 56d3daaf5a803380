#pragma once
// What the model tests share: golden files, and the log-probabilities of every position of a
// sequence.
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/engine.h"

namespace octet {

// The parsed file. Throws when it is missing: tests run in the source folder.
nlohmann::json read_golden(const std::filesystem::path& path);

// Little-endian float32 values from base64.
std::vector<float> floats_from_base64(const std::string& text);

// This machine with nothing above one instruction set; the sets that it has, lowest first.
DeviceInfo test_device(const std::string& max_isa);
std::vector<std::string> available_isas();

// Rows of log-probabilities, one per token of `ids`, each over the whole vocabulary and indexed by
// token id.
std::vector<std::vector<float>> all_logprobs(const std::filesystem::path& model,
                                             const std::vector<int32_t>& ids,
                                             const DeviceInfo& device, Carrier carrier);

// The same of a model that is prepared already, at some positions of `ids`.
std::vector<std::vector<float>> logprobs_at(const std::vector<int32_t>& positions,
                                            Prepared prepared, const std::vector<int32_t>& ids,
                                            const DeviceInfo& device);

// The log-probabilities of one row of logits, summed in double.
std::vector<double> log_softmax(const float* logits, size_t count);

}  // namespace octet
