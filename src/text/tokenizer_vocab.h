#pragma once
// The tokens of a tokenizer: id to the bytes it stands for, and text to id.
//
// A plain vocabulary (SentencePiece style) writes its tokens as they are. A byte-level vocabulary
// writes each byte as one printable character (GPT-2's table: 0x21-0x7E, 0xA1-0xAC and 0xAE-0xFF
// stand for themselves, the other 68 are U+0100 and on, in byte order). A token whose text holds
// any other character stands for that text itself. Tokens are kept as the bytes they stand for;
// `coded` says which kind it is.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace octet {

// How a vocabulary writes its tokens.
enum class Spelling : uint8_t { ByteLevel, Plain };

// Grows while a file is read, then index() makes it searchable. Ids may have holes.
class Vocab {
 public:
  explicit Vocab(Spelling spelling = Spelling::ByteLevel) : spelling_(spelling) {}

  Spelling spelling() const { return spelling_; }
  // Makes room ahead for that many tokens of that many bytes in all.
  void reserve(size_t tokens, size_t bytes);
  // Adds a token. Requires 0 <= id < 2^31. Throws BadInput when the id is taken.
  void add(std::string_view text, int32_t id);
  // Builds the search table. Throws BadInput when two ids have the same text.
  void index();

  // One past the highest id.
  int32_t size() const { return static_cast<int32_t>(entries_.size()); }
  // Number of tokens.
  size_t count() const { return count_; }
  // Whether a token has this id; false for any id out of range.
  bool has(int32_t id) const {
    return id >= 0 && id < size() && entries_[static_cast<size_t>(id)].used;
  }
  // The bytes that token `id` stands for; empty for a hole or an id out of range.
  std::string_view bytes(int32_t id) const;
  // Whether bytes(id) came through the byte table; never in a plain vocabulary.
  bool coded(int32_t id) const { return has(id) && entries_[static_cast<size_t>(id)].coded; }

  // A text ready to be looked up.
  struct Key {
    uint64_t hash;
    std::string_view bytes;
    bool coded;
  };
  // The key of a token text; `room` takes text.size() bytes and lives as long as the key.
  Key key(std::string_view text, char* room) const;
  // Asks the memory for what find(key) will read: look-ups are bound by its latency.
  void prefetch(const Key& key) const;
  // The id of the token of this key; -1 if there is none. Requires index().
  int32_t find(const Key& key) const;
  // The id of the token with this text, as tokenizer.json writes it. Requires index().
  std::optional<int32_t> find(std::string_view text) const;
  // The id of the token that stands for these bytes and is of that kind; -1 if there is none.
  // Requires index().
  int32_t find_bytes(std::string_view bytes, bool coded) const;

 private:
  struct Entry {
    uint32_t offset = 0;  // into arena_
    uint32_t length : 30 = 0;
    uint32_t coded : 1 = 0;
    uint32_t used : 1 = 0;
  };
  struct Slot {
    uint32_t tag = 0;
    int32_t id = -1;
  };
  void insert(int32_t id, uint64_t hash);

  Spelling spelling_;
  std::string arena_;
  std::vector<Entry> entries_;  // [id]
  std::vector<Slot> slots_;     // open addressing, a power of two, at most two thirds full
  size_t count_ = 0;
};

}  // namespace octet
