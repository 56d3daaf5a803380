#pragma once
// A request on its way: its tokens, its blocks, and how far it has been computed.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "engine/request.h"
#include "kv/block_pool.h"

namespace octet {

struct Sequence {
  Sequence(uint64_t number, Request asked, BlockPool& pool)
      : id(number), request(std::move(asked)), tokens(request.prompt), blocks(pool) {
    if (request.sampling.repetition_penalty != 1) {
      for (const int32_t token : tokens) saw(token);
    }
  }

  uint64_t id;
  Request request;
  std::vector<int32_t> tokens;  // prompt, then answer
  BlockTable blocks;
  int64_t computed = 0;       // tokens whose keys and values are in the cache
  int64_t final_length = 0;   // tokens that will be in the cache when it ends at the latest
  std::vector<int32_t> seen;  // sorted, each once; kept only with a repetition penalty
  bool cancelled = false;

  int64_t pending() const { return static_cast<int64_t>(tokens.size()) - computed; }
  int64_t answered() const { return static_cast<int64_t>(tokens.size() - request.prompt.size()); }

  // Appends a token of the answer.
  void push(int32_t token) {
    tokens.push_back(token);
    if (request.sampling.repetition_penalty != 1) saw(token);
  }

 private:
  void saw(int32_t token) {
    const auto at = std::lower_bound(seen.begin(), seen.end(), token);
    if (at == seen.end() || *at != token) seen.insert(at, token);
  }
};

}  // namespace octet
