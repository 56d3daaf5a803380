#pragma once
// Ranks of one model inside one process, each on a thread of its own.
#include <filesystem>
#include <optional>
#include <span>
#include <vector>

#include "num/quant_spec.h"
#include "op/linear.h"

namespace octet {

// Log-probabilities [tokens][vocab].
using RankRows = std::vector<std::vector<float>>;

// Every row of one sequence with float32 carriers, computed by one rank on one thread.
RankRows run_alone(const std::filesystem::path& path, std::span<const int32_t> ids,
                   std::optional<SchemeId> prefer = {});

// The same by `ranks` ranks. All must give the same bits, which are returned.
RankRows run_ranks(const std::filesystem::path& path, std::span<const int32_t> ids, int ranks,
                   std::optional<SchemeId> prefer = {});

}  // namespace octet
