#include "engine/batch_builder.h"

#include <gmock/gmock.h>

#include <deque>
#include <set>

namespace octet {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int64_t kBlockSize = 4;

class BatchBuilder : public ::testing::Test {
 protected:
  BatchBuilder() { kv_.block_size = kBlockSize; }

  Sequence& add(int32_t prompt_tokens, Request request = {}) {
    for (int32_t i = 0; i < prompt_tokens; ++i)
      request.prompt.push_back(100 * static_cast<int32_t>(sequences_.size() + 1) + i);
    sequences_.emplace_back(sequences_.size() + 1, std::move(request), pool_);
    order_.push_back(&sequences_.back());
    return sequences_.back();
  }
  // A sequence whose prompt is done and that has one new token.
  Sequence& add_answering(int32_t prompt_tokens) {
    Sequence& s = add(prompt_tokens);
    EXPECT_TRUE(s.blocks.grow(prompt_tokens, kBlockSize));
    s.computed = prompt_tokens;
    s.push(7);
    return s;
  }
  std::vector<StepPart> plan(int64_t rows) const { return plan_step(order_, rows, kBlockSize); }

  KvSpec kv_;
  BlockPool pool_{16};
  std::deque<Sequence> sequences_;
  std::vector<Sequence*> order_;
};

TEST_F(BatchBuilder, AnswersComeBeforePromptsAndPromptsTakeWhatIsLeft) {
  Sequence& prompt = add(9);
  Sequence& answering = add_answering(5);
  const auto parts = plan(6);
  ASSERT_EQ(parts.size(), 2U);
  EXPECT_EQ(parts[0].sequence, &answering);
  EXPECT_EQ(parts[0].rows, 1);
  EXPECT_EQ(parts[1].sequence, &prompt);
  EXPECT_EQ(parts[1].rows, 5);
}

TEST_F(BatchBuilder, LeavesOutWhatHasNoRowsOrBlocksLeft) {
  add(9);
  add(9);
  EXPECT_EQ(plan(9).size(), 1U);
  BlockTable hoard(pool_);
  ASSERT_TRUE(hoard.grow(pool_.free_blocks() * kBlockSize, kBlockSize));
  EXPECT_EQ(plan(64).size(), 1U);  // the first already has its blocks
}

TEST_F(BatchBuilder, LaysOutRowsPositionsSlotsAndTables) {
  add_answering(5);
  add(3);
  auto parts = plan(64);
  const Batch batch = build_batch(parts, kv_);
  EXPECT_THAT(batch.tokens, ElementsAre(7, 200, 201, 202));
  EXPECT_THAT(batch.positions, ElementsAre(5, 0, 1, 2));
  ASSERT_EQ(batch.spans.size(), 2U);
  EXPECT_EQ(batch.spans[0].rows, 1);
  EXPECT_EQ(batch.spans[0].context, 5);
  EXPECT_EQ(batch.spans[1].row_begin, 1);
  EXPECT_EQ(batch.spans[1].rows, 3);
  EXPECT_EQ(batch.table_stride, 2);
  ASSERT_EQ(batch.block_tables.size(), 4U);
  for (size_t row = 0; row < batch.tokens.size(); ++row) {
    const size_t sequence = row == 0 ? 0 : 1;
    const int32_t position = batch.positions[row];
    const int32_t block =
        batch.block_tables[sequence * 2 + static_cast<size_t>(position / kBlockSize)];
    EXPECT_EQ(batch.slots[row], block * kBlockSize + position % kBlockSize);
  }
  const std::set<int64_t> slots(batch.slots.begin(), batch.slots.end());
  EXPECT_EQ(slots.size(), batch.slots.size());
  EXPECT_THAT(batch.logit_rows, ElementsAre(0, 3));
  EXPECT_THAT(batch.targets, IsEmpty());
}

TEST_F(BatchBuilder, AsksForNoLogitsBeforeThePromptIsDone) {
  add(9);
  auto parts = plan(4);
  EXPECT_THAT(build_batch(parts, kv_).logit_rows, IsEmpty());
}

TEST_F(BatchBuilder, AScoredPromptWantsEveryRowThatHasANextToken) {
  Request request;
  request.score_prompt = true;
  add(4, request);
  auto parts = plan(64);
  const Batch batch = build_batch(parts, kv_);
  EXPECT_THAT(batch.logit_rows, ElementsAre(0, 1, 2));
  EXPECT_THAT(batch.targets, ElementsAre(101, 102, 103));
}

TEST_F(BatchBuilder, KeepsAHistoryOnlyForAPenalty) {
  Request request;
  request.sampling.repetition_penalty = 1.2F;
  request.prompt = {9, 9, 3};
  add(0, request);
  add(2);
  auto parts = plan(64);
  const Batch batch = build_batch(parts, kv_);
  EXPECT_THAT(batch.history, ElementsAre(3, 9));
  EXPECT_EQ(batch.sample[0].history_end - batch.sample[0].history_begin, 2);
  EXPECT_EQ(batch.sample[1].history_end - batch.sample[1].history_begin, 0);
}

TEST(DrawBits, DependOnSeedAndPositionAlone) {
  EXPECT_EQ(draw_bits(1, 5), draw_bits(1, 5));
  std::set<uint64_t> distinct;
  for (uint64_t seed = 0; seed < 16; ++seed) {
    for (uint64_t position = 0; position < 64; ++position)
      distinct.insert(draw_bits(seed, position));
  }
  EXPECT_EQ(distinct.size(), 16U * 64U);
}

}  // namespace
}  // namespace octet
