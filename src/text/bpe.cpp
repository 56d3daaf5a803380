#include "text/bpe.h"

#include <algorithm>
#include <bit>
#include <functional>

#include "base/error.h"
#include "text/utf8.h"

namespace octet {
namespace {

constexpr uint32_t kNone = UINT32_MAX;
// Up to this many bytes a scan for the best pair beats a heap: a word of a text has 5 to 10.
constexpr size_t kShortWord = 48;

uint64_t hash_of(int32_t left, int32_t right) {
  const uint64_t key =
      static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
  const auto product =
      static_cast<unsigned __int128>(key ^ 0x9E3779B97F4A7C15) * 0xD6E8FEB86659FD93;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

[[noreturn]] void refuse_merge(size_t rank, const Bpe::TokenPair& pair, std::string_view missing) {
  throw_error(
      Code::BadInput,
      fmt::format("merge {} (\"{}\" with \"{}\") names \"{}\", which is not in the vocabulary",
                  rank, pair.first, pair.second, missing));
}

}  // namespace

Bpe::Bpe(const Vocab& vocab, size_t merges) {
  merges_.reserve(merges);
  slots_.resize(std::bit_ceil(std::max<size_t>(merges + merges / 2, 16)));
  for (size_t byte = 0; byte < byte_ids_.size(); ++byte) {
    const char text = static_cast<char>(byte);
    byte_ids_[byte] = vocab.find_bytes({&text, 1}, vocab.spelling() == Spelling::ByteLevel);
  }
}

uint32_t Bpe::first_missing_byte() const {
  return static_cast<uint32_t>(std::find(byte_ids_.begin(), byte_ids_.end(), -1) -
                               byte_ids_.begin());
}

void Bpe::merge(const Vocab& vocab, std::span<const TokenPair> pairs) {
  const size_t merges = merges_.size() + pairs.size();
  if (merges + merges / 2 > slots_.size()) {
    slots_.assign(std::bit_ceil(merges * 3), Slot{});
    for (uint32_t rank = 0; rank < merges_.size(); ++rank) insert(rank);
  }
  for (size_t done = 0; done < pairs.size(); done += kBlock) {
    merge_block(vocab, pairs.subspan(done, std::min(kBlock, pairs.size() - done)));
  }
}

// Looks up a block of pairs in three passes, so that the memory works on many look-ups at once.
void Bpe::merge_block(const Vocab& vocab, std::span<const TokenPair> pairs) {
  std::array<std::array<Vocab::Key, 2>, kBlock> keys;
  size_t bytes = 0;
  for (const auto& [left, right] : pairs) bytes += left.size() + right.size();
  if (room_.size() < bytes) room_.resize(bytes);
  char* room = room_.data();
  for (size_t i = 0; i < pairs.size(); ++i) {
    const std::string_view texts[2] = {pairs[i].first, pairs[i].second};
    for (size_t side = 0; side < 2; ++side) {
      keys[i][side] = vocab.key(texts[side], room);
      vocab.prefetch(keys[i][side]);
      room += texts[side].size();
    }
  }
  const size_t first = merges_.size();
  for (size_t i = 0; i < pairs.size(); ++i) {
    const int32_t left = vocab.find(keys[i][0]);
    const int32_t right = vocab.find(keys[i][1]);
    if (left < 0 || right < 0)
      refuse_merge(merges_.size(), pairs[i], left < 0 ? pairs[i].first : pairs[i].second);
    merges_.push_back({left, right, joined_id(vocab, left, right, pairs[i])});
    __builtin_prefetch(&slots_[hash_of(left, right) & (slots_.size() - 1)], 1);
  }
  for (size_t rank = first; rank < merges_.size(); ++rank) insert(static_cast<uint32_t>(rank));
}

// Most files number the joined tokens in merge order, so the one after the last is tried before a
// search.
int32_t Bpe::joined_id(const Vocab& vocab, int32_t left, int32_t right, const TokenPair& pair) {
  const int32_t guess = merges_.empty() ? -1 : merges_.back().joined + 1;
  const std::string_view guessed = vocab.bytes(guess), a = vocab.bytes(left),
                         b = vocab.bytes(right);
  const bool same_kind =
      vocab.coded(guess) == vocab.coded(left) && vocab.coded(left) == vocab.coded(right);
  if (vocab.has(guess) && same_kind && guessed.size() == a.size() + b.size() &&
      guessed.starts_with(a) && guessed.ends_with(b)) {
    return guess;
  }
  const std::string text = std::string(pair.first).append(pair.second);
  const std::optional<int32_t> id = vocab.find(text);
  if (!id) refuse_merge(merges_.size(), pair, text);
  return *id;
}

void Bpe::insert(uint32_t rank) {
  const Merge& merge = merges_[rank];
  const uint64_t hash = hash_of(merge.left, merge.right);
  const auto tag = static_cast<uint32_t>(hash >> 32);
  const size_t mask = slots_.size() - 1;
  size_t at = hash & mask;
  for (; slots_[at].rank != kNone; at = (at + 1) & mask) {
    const Merge& other = merges_[slots_[at].rank];
    if (slots_[at].tag == tag && other.left == merge.left && other.right == merge.right) break;
  }
  slots_[at] = {tag, rank};
}

uint32_t Bpe::rank_of(int32_t left, int32_t right) const {
  const uint64_t hash = hash_of(left, right);
  const auto tag = static_cast<uint32_t>(hash >> 32);
  const size_t mask = slots_.size() - 1;
  for (size_t at = hash & mask; slots_[at].rank != kNone; at = (at + 1) & mask) {
    if (slots_[at].tag != tag) continue;
    const Merge& merge = merges_[slots_[at].rank];
    if (merge.left == left && merge.right == right) return slots_[at].rank;
  }
  return kNone;
}

void Bpe::encode(const Vocab& vocab, std::string_view word, std::vector<int32_t>& ids,
                 Scratch& scratch) const {
  if (options_.ignore_merges) {
    const int32_t whole = vocab.find_bytes(word, vocab.spelling() == Spelling::ByteLevel);
    if (whole >= 0) return ids.push_back(whole);
  }
  const size_t begin = ids.size();
  if (vocab.spelling() == Spelling::ByteLevel) {
    start(word, ids);
  } else {
    start_characters(vocab, word, ids);
  }
  const size_t length = ids.size() - begin;
  if (length < 2) return;
  OCTET_CHECK(length < kNone, "a word of {} bytes", length);
  if (length <= kShortWord) {
    join_short(ids, begin, scratch);
  } else {
    join_long(ids, begin, scratch);
  }
}

// One id per byte; bytes without a token become the unknown token or vanish.
void Bpe::start(std::string_view word, std::vector<int32_t>& ids) const {
  bool after_unknown = false;
  for (const char byte : word) {
    const int32_t id = byte_ids_[static_cast<uint8_t>(byte)];
    if (id >= 0) {
      ids.push_back(id);
      after_unknown = false;
    } else if (options_.unknown_id >= 0) {
      if (!after_unknown || !options_.fuse_unknown) ids.push_back(options_.unknown_id);
      after_unknown = true;
    }
  }
}

// One id per character, or those of its bytes. An unknown token is written only when a known
// character or the end follows, so byte tokens overtake it; all as in the reference.
void Bpe::start_characters(const Vocab& vocab, std::string_view word,
                           std::vector<int32_t>& ids) const {
  bool unknown = false;  // one that is not written yet
  for (size_t at = 0; at < word.size();) {
    const CodePoint c = code_point_at(word, at);
    const std::string_view character = word.substr(at, c.bytes);
    at += c.bytes;
    const int32_t id = c.bytes == 1 ? byte_ids_[c.value] : vocab.find_bytes(character, false);
    if (id >= 0) {
      if (std::exchange(unknown, false)) ids.push_back(options_.unknown_id);
      ids.push_back(id);
    } else if (!append_byte_tokens(character, ids) && options_.unknown_id >= 0) {
      if (unknown && !options_.fuse_unknown) ids.push_back(options_.unknown_id);
      unknown = true;
    }
  }
  if (unknown) ids.push_back(options_.unknown_id);
}

// False, and nothing appended, unless there is a token for every byte.
bool Bpe::append_byte_tokens(std::string_view character, std::vector<int32_t>& ids) const {
  if (options_.byte_tokens.empty()) return false;
  const auto token = [&](char byte) { return options_.byte_tokens[static_cast<uint8_t>(byte)]; };
  if (std::any_of(character.begin(), character.end(), [&](char b) { return token(b) < 0; }))
    return false;
  for (const char byte : character) ids.push_back(token(byte));
  return true;
}

// ranks[i] is the rank of the pair (i, i+1).
void Bpe::join_short(std::vector<int32_t>& ids, size_t begin, Scratch& scratch) const {
  int32_t* word = ids.data() + begin;
  size_t length = ids.size() - begin;
  scratch.ranks.resize(kShortWord);
  uint32_t* ranks = scratch.ranks.data();
  for (size_t i = 0; i + 1 < length; ++i) ranks[i] = rank_of(word[i], word[i + 1]);
  while (length > 1) {
    const size_t best = static_cast<size_t>(std::min_element(ranks, ranks + length - 1) - ranks);
    if (ranks[best] == kNone) break;
    word[best] = merges_[ranks[best]].joined;
    std::copy(word + best + 2, word + length, word + best + 1);
    if (best + 2 < length) std::copy(ranks + best + 2, ranks + length - 1, ranks + best + 1);
    --length;
    if (best > 0) ranks[best - 1] = rank_of(word[best - 1], word[best]);
    if (best + 1 < length) ranks[best] = rank_of(word[best], word[best + 1]);
  }
  ids.resize(begin + length);
}

// A heap of (rank, place) over a linked list. An entry is stale when its place no longer has that
// rank.
void Bpe::join_long(std::vector<int32_t>& ids, size_t begin, Scratch& scratch) const {
  int32_t* word = ids.data() + begin;
  const auto length = static_cast<uint32_t>(ids.size() - begin);
  std::vector<uint32_t>&ranks = scratch.ranks, &next = scratch.next, &previous = scratch.previous;
  std::vector<uint64_t>& queue = scratch.queue;
  ranks.assign(length, kNone);
  next.resize(length);
  previous.resize(length);
  queue.clear();
  const auto rank_at = [&](uint32_t at) {
    ranks[at] = next[at] == kNone ? kNone : rank_of(word[at], word[next[at]]);
    return ranks[at];
  };
  const auto entry = [&](uint32_t at) { return static_cast<uint64_t>(ranks[at]) << 32 | at; };
  const auto push = [&](uint32_t at) {
    if (rank_at(at) == kNone) return;
    queue.push_back(entry(at));
    std::push_heap(queue.begin(), queue.end(), std::greater<>());
  };
  for (uint32_t i = 0; i < length; ++i) {
    next[i] = i + 1 < length ? i + 1 : kNone;
    previous[i] = i == 0 ? kNone : i - 1;
    if (rank_at(i) != kNone) queue.push_back(entry(i));
  }
  std::make_heap(queue.begin(), queue.end(), std::greater<>());
  while (!queue.empty()) {
    std::pop_heap(queue.begin(), queue.end(), std::greater<>());
    const auto at = static_cast<uint32_t>(queue.back());
    const auto rank = static_cast<uint32_t>(queue.back() >> 32);
    queue.pop_back();
    if (ranks[at] != rank) continue;
    const uint32_t eaten = next[at];
    word[at] = merges_[rank].joined;
    next[at] = next[eaten];
    ranks[eaten] = kNone;
    if (next[at] != kNone) previous[next[at]] = at;
    push(at);
    if (previous[at] != kNone) push(previous[at]);
  }
  uint32_t kept = 0;
  for (uint32_t i = 0; i != kNone; i = next[i]) word[kept++] = word[i];
  ids.resize(begin + kept);
}

}  // namespace octet
