#pragma once
// SmolLM2-135M-Instruct in every form, made once per run of the test program by Octet's own
// quantizer.
#include <filesystem>
#include <string>
#include <vector>

#include "engine/engine.h"

namespace octet {

// The bf16 checkpoint (tools/get_smollm2.py models/SmolLM2-135M-Instruct), or an FP8 form of it:
// "bf16", "fp8-dynamic", "fp8-block", "fp8-static" (with the input scales that llm-compressor
// calibrated), "fp8-weight-only". Throws when the model has not been fetched.
std::filesystem::path smollm2(const std::string& form);

// The same with only its first `layers` layers.
std::filesystem::path smollm2_first_layers(const std::string& form, int layers);

// The greedy continuation of a prompt.
std::vector<int32_t> greedy(Engine& engine, const std::vector<int32_t>& prompt, int64_t count);

}  // namespace octet
