// How ranks share a model: shapes, and the numbers of ranks that can.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "plan/model_plan.h"

namespace octet {
namespace {

constexpr int kMostRanks = 1024;

int64_t share(int64_t whole, int ranks, std::string_view what) {
  if (whole % ranks != 0) {
    throw_error(
        Code::CannotRun,
        fmt::format("{} {} cannot be shared by {} ranks: not a multiple", whole, what, ranks),
        "choose -tp so that it divides heads, key-value heads, MLP width and vocabulary");
  }
  return whole / ranks;
}

// A number of things that every rank takes an equal part of.
struct Shared {
  int64_t count;
  std::string what;
};

std::vector<Shared> shared_by_ranks(const PlanRequest& request) {
  const ModelDims& d = request.dims;
  std::vector<Shared> list{{d.heads, "heads"},
                           {d.kv_heads, "key-value heads"},
                           {d.intermediate, "MLP columns"},
                           {d.vocab, "vocabulary entries"}};
  const auto add = [&](int64_t count, std::string what) {
    // Layers of attention and MLP say nothing that the lines above do not.
    if (std::none_of(list.begin(), list.end(),
                     [&](const Shared& known) { return count % known.count == 0; })) {
      list.push_back({count, std::move(what)});
    }
  };
  for (const PlanLayer& layer : request.layers) {
    if (layer.parallel == Parallel::Column) add(layer.shape.n, "rows of " + layer.pattern);
    if (layer.parallel == Parallel::Row) add(layer.shape.k, "columns of " + layer.pattern);
  }
  return list;
}

}  // namespace

ModelDims rank_dims(const ModelDims& dims, int ranks) {
  ModelDims rank = dims;
  rank.heads = share(dims.heads, ranks, "heads");
  rank.kv_heads = share(dims.kv_heads, ranks, "key-value heads");
  rank.intermediate = share(dims.intermediate, ranks, "MLP columns");
  rank.vocab = share(dims.vocab, ranks, "vocabulary entries");
  return rank;
}

LayerShape rank_shape(const PlanLayer& layer, int ranks) {
  switch (layer.parallel) {
    case Parallel::None:
      return layer.shape;
    case Parallel::Column:
      return {share(layer.shape.n, ranks, "rows of " + layer.module), layer.shape.k};
    case Parallel::Row:
      return {layer.shape.n, share(layer.shape.k, ranks, "columns of " + layer.module)};
  }
  return layer.shape;
}

std::vector<int> possible_ranks(const PlanRequest& request) {
  if (!request.one_rank.empty()) return {1};
  int64_t common = 0;
  for (const Shared& item : shared_by_ranks(request)) common = std::gcd(common, item.count);
  std::vector<int> counts;
  for (int n = 1; n <= std::min<int64_t>(common, kMostRanks); ++n) {
    if (common % n == 0) counts.push_back(n);
  }
  return counts;
}

std::optional<std::string> unshareable(const PlanRequest& request, int ranks) {
  if (ranks > 1 && !request.one_rank.empty()) {
    return fmt::format("-tp {}: {} cannot be shared by ranks: {}\n  the plan shows one rank", ranks,
                       request.model, request.one_rank);
  }
  std::vector<std::string> uneven;
  for (const Shared& item : shared_by_ranks(request)) {
    if (item.count % ranks != 0) uneven.push_back(fmt::format("{} {}", item.count, item.what));
  }
  if (uneven.empty()) return std::nullopt;
  return fmt::format(
      "-tp {}: {} cannot be shared by {} ranks: {} {} no multiple of {}\n"
      "  the plan shows one rank; ranks that can share this model: {}",
      ranks, request.model, ranks, fmt::join(uneven, ", "), uneven.size() == 1 ? "is" : "are",
      ranks, fmt::join(possible_ranks(request), ", "));
}

}  // namespace octet
