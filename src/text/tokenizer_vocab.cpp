#include "text/tokenizer_vocab.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "base/error.h"

namespace octet {
namespace {

constexpr uint32_t kCodedEnd = 0x144;  // one past the last character of the byte table

// [character] byte it stands for, -1 for none.
constexpr std::array<int16_t, kCodedEnd> make_byte_table() {
  std::array<int16_t, kCodedEnd> table{};
  table.fill(-1);
  int16_t other = 0x100;
  for (int16_t byte = 0; byte < 256; ++byte) {
    const bool printable =
        (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    table[static_cast<size_t>(printable ? byte : other++)] = byte;
  }
  return table;
}
constexpr auto kByteTable = make_byte_table();
static_assert(kByteTable[0x120] == ' ' && kByteTable[0x10A] == '\n' && kByteTable[0x143] == 0xAD);

// Writes the bytes that `text` stands for to `out`, which has room for text.size() bytes; -1 if it
// is not written in the byte table.
ptrdiff_t decode_coded(std::string_view text, char* out) {
  char* const start = out;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    const auto first = static_cast<uint8_t>(*at++);
    uint32_t character = first;
    if (first >= 0x80) {
      if (first < 0xC2 || first > 0xC5 || at == end) return -1;
      character = (first & 0x1FU) << 6 | (static_cast<uint8_t>(*at++) & 0x3FU);
      if (character >= kCodedEnd) return -1;
    }
    const int16_t byte = kByteTable[character];
    if (byte < 0) return -1;
    *out++ = static_cast<char>(byte);
  }
  return out - start;
}

uint64_t mix(uint64_t a, uint64_t b) {
  const auto product = static_cast<unsigned __int128>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

uint64_t hash_of(std::string_view bytes, bool coded) {
  constexpr uint64_t kOdd = 0x9E3779B97F4A7C15;
  uint64_t hash = bytes.size() * 2 + (coded ? 1 : 0) + kOdd;
  const char* at = bytes.data();
  size_t left = bytes.size();
  for (; left >= 8; at += 8, left -= 8) {
    uint64_t word;
    std::memcpy(&word, at, 8);
    hash = mix(hash ^ word, kOdd);
  }
  uint64_t tail = 0;
  if (left >= 4) {  // two reads that may overlap
    uint32_t low, high;
    std::memcpy(&low, at, 4);
    std::memcpy(&high, at + left - 4, 4);
    tail = static_cast<uint64_t>(high) << 32 | low;
  } else if (left > 0) {  // first, middle and last byte
    const auto byte = [&](size_t i) { return static_cast<uint64_t>(static_cast<uint8_t>(at[i])); };
    tail = byte(0) << 16 | byte(left / 2) << 8 | byte(left - 1);
  }
  return mix(hash ^ tail, kOdd);
}

}  // namespace

void Vocab::add(std::string_view text, int32_t id) {
  OCTET_CHECK(id >= 0, "id {}", id);
  const auto at = static_cast<size_t>(id);
  if (has(id)) {
    throw_error(Code::BadInput,
                fmt::format("id {} belongs to two tokens, one of them \"{}\"", id, text));
  }
  if (at >= entries_.size()) entries_.resize(at + 1);
  const size_t offset = arena_.size();
  arena_.append(text);
  const ptrdiff_t decoded =
      spelling_ == Spelling::Plain ? -1 : decode_coded(text, arena_.data() + offset);
  const bool coded = decoded >= 0;
  if (coded) {
    arena_.resize(offset + static_cast<size_t>(decoded));
  } else {
    std::copy(text.begin(), text.end(), arena_.begin() + static_cast<ptrdiff_t>(offset));
  }
  const size_t length = arena_.size() - offset;
  if (arena_.size() > UINT32_MAX || length >= size_t{1} << 30) {
    throw_error(Code::BadInput, fmt::format("the tokens have more than {} bytes", UINT32_MAX));
  }
  Entry& entry = entries_[at];
  entry.offset = static_cast<uint32_t>(offset);
  entry.length = static_cast<uint32_t>(length);
  entry.coded = coded;
  entry.used = 1;
  ++count_;
  if (slots_.size() < count_ + count_ / 2) {
    if (!slots_.empty()) index();
  } else {
    insert(id, hash_of(bytes(id), coded));
  }
}

void Vocab::reserve(size_t tokens, size_t bytes) {
  entries_.reserve(tokens);
  arena_.reserve(bytes);
}

void Vocab::index() {
  slots_.assign(std::bit_ceil(std::max<size_t>(count_ + count_ / 2, 16)), Slot{});
  constexpr int32_t kBlock = 32;
  std::array<uint64_t, kBlock> hashes;
  for (int32_t block = 0; block < size(); block += kBlock) {
    const int32_t end = std::min(block + kBlock, size());
    for (int32_t id = block; id < end; ++id) {
      const uint64_t hash = hash_of(bytes(id), coded(id));
      hashes[static_cast<size_t>(id - block)] = hash;
      __builtin_prefetch(&slots_[hash & (slots_.size() - 1)], 1);
    }
    for (int32_t id = block; id < end; ++id) {
      if (has(id)) insert(id, hashes[static_cast<size_t>(id - block)]);
    }
  }
}

void Vocab::insert(int32_t id, uint64_t hash) {
  const std::string_view text = bytes(id);
  const bool is_coded = coded(id);
  const auto tag = static_cast<uint32_t>(hash >> 32);
  const size_t mask = slots_.size() - 1;
  size_t at = hash & mask;
  for (; slots_[at].id >= 0; at = (at + 1) & mask) {
    const Slot& slot = slots_[at];
    if (slot.tag == tag && coded(slot.id) == is_coded && bytes(slot.id) == text) {
      throw_error(Code::BadInput,
                  fmt::format("the token of id {} has the same text as that of id {}: \"{}\"", id,
                              slot.id, text));
    }
  }
  slots_[at] = {tag, id};
}

std::string_view Vocab::bytes(int32_t id) const {
  if (!has(id)) return {};
  const Entry& entry = entries_[static_cast<size_t>(id)];
  return std::string_view(arena_).substr(entry.offset, entry.length);
}

Vocab::Key Vocab::key(std::string_view text, char* room) const {
  const ptrdiff_t length = spelling_ == Spelling::Plain ? -1 : decode_coded(text, room);
  const bool coded = length >= 0;
  const std::string_view bytes = coded ? std::string_view(room, static_cast<size_t>(length)) : text;
  return {hash_of(bytes, coded), bytes, coded};
}

void Vocab::prefetch(const Key& key) const {
  if (!slots_.empty()) __builtin_prefetch(&slots_[key.hash & (slots_.size() - 1)]);
}

int32_t Vocab::find(const Key& key) const {
  if (slots_.empty()) return -1;
  const auto tag = static_cast<uint32_t>(key.hash >> 32);
  const size_t mask = slots_.size() - 1;
  for (size_t at = key.hash & mask; slots_[at].id >= 0; at = (at + 1) & mask) {
    const Slot& slot = slots_[at];
    if (slot.tag == tag && coded(slot.id) == key.coded && bytes(slot.id) == key.bytes)
      return slot.id;
  }
  return -1;
}

std::optional<int32_t> Vocab::find(std::string_view text) const {
  std::string room(text.size(), '\0');
  const int32_t id = find(key(text, room.data()));
  return id < 0 ? std::nullopt : std::optional(id);
}

int32_t Vocab::find_bytes(std::string_view bytes, bool coded) const {
  return find(Key{hash_of(bytes, coded), bytes, coded});
}

}  // namespace octet
