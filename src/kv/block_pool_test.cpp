#include "kv/block_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <set>

#include "base/error.h"

namespace octet {
namespace {

TEST(BlockPool, HandsOutEveryBlockOnce) {
  BlockPool pool(5);
  std::set<int32_t> blocks;
  for (int i = 0; i < 5; ++i) blocks.insert(pool.allocate());
  EXPECT_EQ(blocks, (std::set<int32_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(pool.free_blocks(), 0);
  EXPECT_EQ(pool.allocate(), -1);
}

TEST(BlockPool, TakesABlockBackWhenItsLastOwnerLeaves) {
  BlockPool pool(1);
  const int32_t block = pool.allocate();
  pool.retain(block);
  pool.release(block);
  EXPECT_EQ(pool.free_blocks(), 0);
  pool.release(block);
  EXPECT_EQ(pool.free_blocks(), 1);
}

TEST(BlockPool, ABlockWithoutAnOwnerCannotBeGivenBackOrShared) {
  BlockPool pool(1);
  EXPECT_THROW(pool.release(0), Error);
  EXPECT_THROW(pool.retain(0), Error);
}

TEST(BlockTable, GrowsInWholeBlocksAndKeepsWhatItHas) {
  BlockPool pool(4);
  BlockTable table(pool);
  ASSERT_TRUE(table.grow(1, 16));
  const int32_t first = table.blocks()[0];
  ASSERT_TRUE(table.grow(16, 16));
  EXPECT_EQ(table.blocks().size(), 1U);
  ASSERT_TRUE(table.grow(17, 16));
  EXPECT_EQ(table.blocks().size(), 2U);
  EXPECT_EQ(table.blocks()[0], first);
  EXPECT_EQ(table.slot(3, 16), first * 16 + 3);
  EXPECT_EQ(table.slot(18, 16), table.blocks()[1] * 16 + 2);
}

TEST(BlockTable, TakesNothingWhenThePoolHasTooFew) {
  BlockPool pool(3);
  BlockTable one(pool), two(pool);
  ASSERT_TRUE(one.grow(32, 16));
  EXPECT_FALSE(two.grow(17, 16));
  EXPECT_TRUE(two.blocks().empty());
  EXPECT_EQ(pool.free_blocks(), 1);
  EXPECT_TRUE(two.grow(16, 16));
}

TEST(BlockTable, GivesItsBlocksBackWhenItGoesAndNotWhenItMoves) {
  BlockPool pool(3);
  std::optional<BlockTable> table(std::in_place, pool);
  ASSERT_TRUE(table->grow(48, 16));
  BlockTable moved(std::move(*table));
  table.reset();
  EXPECT_EQ(pool.free_blocks(), 0);
  moved.shrink(17, 16);
  EXPECT_EQ(pool.free_blocks(), 1);
  moved = BlockTable(pool);
  EXPECT_EQ(pool.free_blocks(), 3);
}

TEST(BlockTable, NeverSharesOrLosesABlockInAnyOrder) {
  constexpr int32_t kBlocks = 37;
  constexpr int64_t kBlockSize = 8;
  std::mt19937 random(1);
  const auto below = [&](int64_t n) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(n));
  };
  BlockPool pool(kBlocks);
  std::vector<BlockTable> tables;
  for (int step = 0; step < 2000; ++step) {
    const int64_t action = below(4);
    if (action == 0 || tables.empty()) {
      tables.emplace_back(pool);
    } else if (action == 1) {
      tables[static_cast<size_t>(below(static_cast<int64_t>(tables.size())))].grow(below(200),
                                                                                   kBlockSize);
    } else if (action == 2) {
      tables[static_cast<size_t>(below(static_cast<int64_t>(tables.size())))].shrink(below(200),
                                                                                     kBlockSize);
    } else {
      std::shuffle(tables.begin(), tables.end(), random);
      tables.pop_back();
    }
    std::set<int32_t> owned;
    size_t held = 0;
    for (const BlockTable& table : tables) {
      owned.insert(table.blocks().begin(), table.blocks().end());
      held += table.blocks().size();
    }
    ASSERT_EQ(owned.size(), held) << "a block has two owners after step " << step;
    ASSERT_EQ(static_cast<int32_t>(held) + pool.free_blocks(), kBlocks) << "step " << step;
  }
}

TEST(KvCache, KeepsEveryLayersKeysAndValuesApart) {
  const auto device = make_cpu_device({}, 1);
  KvSpec spec;
  spec.kv_heads = 2;
  spec.head_dim = 16;
  spec.layers = 3;
  const KvCache cache(spec, 5, *device);
  std::vector<std::byte*> starts;
  for (int64_t layer = 0; layer < 3; ++layer) {
    starts.push_back(static_cast<std::byte*>(cache.k(layer)));
    starts.push_back(static_cast<std::byte*>(cache.v(layer)));
  }
  for (size_t i = 1; i < starts.size(); ++i)
    EXPECT_EQ(starts[i] - starts[i - 1], 5 * spec.block_bytes());
}

}  // namespace
}  // namespace octet
