#pragma once
// Byte pair encoding of one word: its symbols (bytes of a byte-level vocabulary, characters of a
// plain one) are joined pair by pair, always the pair that the merge list names first, the leftmost
// of equals first, until no listed pair is left (Hugging Face tokenizers, models/bpe).
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/tokenizer_vocab.h"

namespace octet {

// What the model part of tokenizer.json says besides vocabulary and merges.
struct BpeOptions {
  bool ignore_merges =
      false;  // a word that is a token as a whole becomes that token, whatever the merges say
  bool fuse_unknown = false;  // neighbouring symbols without a token become one unknown token
  int32_t unknown_id = -1;    // stands for a symbol that has no token; -1: such symbols vanish
  // [byte] token "<0xNN>", -1 for none: a character without a token becomes those of its bytes, if
  // all are there. Empty: no byte fallback.
  std::vector<int32_t> byte_tokens = {};
};

// The merge list of a vocabulary. Immutable once built; any number of threads may encode.
class Bpe {
 public:
  // Room for the work on one word, reused from word to word by one thread.
  struct Scratch {
    std::vector<uint32_t> ranks, next, previous;
    std::vector<uint64_t> queue;
  };

  // Takes room for `merges` merges over an indexed vocabulary; merge() and encode() must be given
  // the same one.
  Bpe(const Vocab& vocab, size_t merges);
  // Merges are looked up in blocks of this many, so that the memory works on many look-ups at once.
  static constexpr size_t kBlock = 32;
  // Appends the next merges of the list, each two token texts. Throws BadInput when a part, or the
  // two joined, is not in the vocabulary. A pair named twice counts where it is named last.
  using TokenPair = std::pair<std::string_view, std::string_view>;
  void merge(const Vocab& vocab, std::span<const TokenPair> pairs);
  // Sets what else the model says.
  void set_options(BpeOptions options) { options_ = std::move(options); }

  // How many merges the list has.
  size_t merge_count() const { return merges_.size(); }
  // Lowest byte value that no token of a byte-level vocabulary stands for; 256 if there is none.
  uint32_t first_missing_byte() const;

  // Appends the ids of `word` to `ids`. Requires well-formed UTF-8 where the vocabulary is plain.
  // O(n log n) in its bytes.
  void encode(const Vocab& vocab, std::string_view word, std::vector<int32_t>& ids,
              Scratch& scratch) const;

 private:
  struct Merge {
    int32_t left, right, joined;
  };
  struct Slot {
    uint32_t tag = 0;
    uint32_t rank = UINT32_MAX;
  };
  uint32_t rank_of(int32_t left, int32_t right) const;
  int32_t joined_id(const Vocab& vocab, int32_t left, int32_t right, const TokenPair& pair);
  void merge_block(const Vocab& vocab, std::span<const TokenPair> pairs);
  void insert(uint32_t rank);
  void start(std::string_view word, std::vector<int32_t>& ids) const;
  void start_characters(const Vocab& vocab, std::string_view word, std::vector<int32_t>& ids) const;
  bool append_byte_tokens(std::string_view character, std::vector<int32_t>& ids) const;
  void join_short(std::vector<int32_t>& ids, size_t begin, Scratch& scratch) const;
  void join_long(std::vector<int32_t>& ids, size_t begin, Scratch& scratch) const;

  BpeOptions options_;
  // [byte] token that stands for it alone, -1 for none; of a plain vocabulary the ASCII ones
  std::array<int32_t, 256> byte_ids_;
  std::vector<Merge> merges_;  // [rank]
  std::vector<Slot>
      slots_;         // pair to rank; open addressing, a power of two, at most two thirds full
  std::string room_;  // of merge_block()
};

}  // namespace octet
