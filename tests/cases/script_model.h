#pragma once
// A model that says a given sequence of tokens, for cases about what comes behind the numbers: each
// token's embedding is a unit vector, no layer changes it, and the output layer scores the token
// that follows it in the script with about sqrt(vocab) and all others with 0.
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "cli/session.h"
#include "engine/engine.h"

namespace octet {

// Writes the model; every id stands in `script` once at most. vocab is a multiple of 64.
void write_script_model(const std::filesystem::path& dir, std::span<const int32_t> script,
                        int64_t vocab = 512);

// A byte-level tokenizer.json: ids 0 to 255 are the bytes, those from 256 on `pieces` (bytes too,
// made by no merge), the next ones `special` tokens.
nlohmann::json script_tokenizer(const std::vector<std::string>& pieces,
                                const std::vector<std::string>& special = {});

// What an answer did.
struct Told {
  Answer answer;
  std::vector<std::string> deltas;  // as they left, none empty
};

// The answer to the prompt `first`, through the code that `octet run` uses. `change` may alter the
// request.
Told tell(const std::filesystem::path& dir, const Tokenizer& tokenizer, int32_t first,
          int64_t max_tokens, std::vector<std::string> stops = {},
          const std::function<void(Request&)>& change = {});

}  // namespace octet
