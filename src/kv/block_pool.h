#pragma once
// Memory of keys and values, cut into blocks that sequences own.
#include <cstdint>
#include <span>
#include <vector>

#include "device/device.h"
#include "num/kv_spec.h"

namespace octet {

// Hands out block numbers. Each block has a count of owners; it returns to the pool when the last
// one leaves.
class BlockPool {
 public:
  explicit BlockPool(int32_t blocks);

  int32_t blocks() const { return static_cast<int32_t>(owners_.size()); }
  int32_t free_blocks() const { return static_cast<int32_t>(free_.size()); }
  // A block with one owner, or -1 when none is free.
  int32_t allocate();
  // One more owner of a block that has an owner.
  void retain(int32_t block);
  // One owner less.
  void release(int32_t block);

 private:
  std::vector<int32_t> owners_;
  std::vector<int32_t> free_;
};

// The blocks of one sequence, oldest first; releases them when it goes. The pool must outlive it.
class BlockTable {
 public:
  explicit BlockTable(BlockPool& pool) : pool_(&pool) {}
  BlockTable(BlockTable&& other) noexcept;
  BlockTable& operator=(BlockTable&& other) noexcept;
  BlockTable(const BlockTable&) = delete;
  BlockTable& operator=(const BlockTable&) = delete;
  ~BlockTable();

  // Grows to hold `tokens` tokens in blocks of block_size; false (and unchanged) when the pool has
  // too few.
  bool grow(int64_t tokens, int64_t block_size);
  // Gives back blocks that hold nothing of the first `tokens` tokens.
  void shrink(int64_t tokens, int64_t block_size);
  std::span<const int32_t> blocks() const { return blocks_; }
  // Where token `position` lives: block * block_size + offset. Requires that it has been grown to.
  int64_t slot(int64_t position, int64_t block_size) const {
    return static_cast<int64_t>(blocks_[static_cast<size_t>(position / block_size)]) * block_size +
           position % block_size;
  }

 private:
  void clear();

  BlockPool* pool_;
  std::vector<int32_t> blocks_;
};

// The memory behind the block numbers: per layer K then V, each [blocks, kv_heads, block_size,
// head_dim].
class KvCache {
 public:
  KvCache(const KvSpec& spec, int32_t blocks, Device& device);

  const KvSpec& spec() const { return spec_; }
  int32_t blocks() const { return blocks_; }
  void* k(int64_t layer) const;
  void* v(int64_t layer) const;

 private:
  KvSpec spec_;
  int32_t blocks_;
  Buffer slab_;
};

}  // namespace octet
