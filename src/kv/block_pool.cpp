#include "kv/block_pool.h"

#include <utility>

#include "base/error.h"

namespace octet {

BlockPool::BlockPool(int32_t blocks) : owners_(static_cast<size_t>(blocks), 0) {
  free_.reserve(owners_.size());
  for (int32_t b = blocks - 1; b >= 0; --b) free_.push_back(b);
}

int32_t BlockPool::allocate() {
  if (free_.empty()) return -1;
  const int32_t block = free_.back();
  free_.pop_back();
  owners_[static_cast<size_t>(block)] = 1;
  return block;
}

void BlockPool::retain(int32_t block) {
  int32_t& owners = owners_.at(static_cast<size_t>(block));
  OCTET_CHECK(owners > 0, "block {} has no owner", block);
  ++owners;
}

void BlockPool::release(int32_t block) {
  int32_t& owners = owners_.at(static_cast<size_t>(block));
  OCTET_CHECK(owners > 0, "block {} has no owner", block);
  if (--owners == 0) free_.push_back(block);
}

BlockTable::BlockTable(BlockTable&& other) noexcept
    : pool_(other.pool_), blocks_(std::exchange(other.blocks_, {})) {}

BlockTable& BlockTable::operator=(BlockTable&& other) noexcept {
  if (this != &other) {
    clear();
    pool_ = other.pool_;
    blocks_ = std::exchange(other.blocks_, {});
  }
  return *this;
}

BlockTable::~BlockTable() {
  clear();
}

bool BlockTable::grow(int64_t tokens, int64_t block_size) {
  const auto need = static_cast<size_t>((tokens + block_size - 1) / block_size);
  if (need > blocks_.size() && need - blocks_.size() > static_cast<size_t>(pool_->free_blocks()))
    return false;
  while (blocks_.size() < need) blocks_.push_back(pool_->allocate());
  return true;
}

void BlockTable::shrink(int64_t tokens, int64_t block_size) {
  const auto keep = static_cast<size_t>((tokens + block_size - 1) / block_size);
  while (blocks_.size() > keep) {
    pool_->release(blocks_.back());
    blocks_.pop_back();
  }
}

void BlockTable::clear() {
  for (const int32_t block : blocks_) pool_->release(block);
  blocks_.clear();
}

KvCache::KvCache(const KvSpec& spec, int32_t blocks, Device& device)
    : spec_(spec),
      blocks_(blocks),
      slab_(device.allocate(static_cast<size_t>(2 * spec.layers * spec.block_bytes() * blocks))) {}

void* KvCache::k(int64_t layer) const {
  return slab_.as<std::byte>() + 2 * layer * spec_.block_bytes() * blocks_;
}

void* KvCache::v(int64_t layer) const {
  return slab_.as<std::byte>() + (2 * layer + 1) * spec_.block_bytes() * blocks_;
}

}  // namespace octet
