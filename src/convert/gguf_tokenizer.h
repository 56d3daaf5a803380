#pragma once
// The tokenizer inside a GGUF file as the JSON files of Hugging Face.
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/gguf.h"

namespace octet {

// The files of a tokenizer and the ids that config.json repeats.
struct GgufTokenizer {
  std::string tokenizer_json;
  std::string tokenizer_config_json;
  // bos_token_id, eos_token_id (a list when several end a turn), pad_token_id: those that are
  // there.
  std::vector<std::pair<std::string, nlohmann::ordered_json>> ids;
  std::vector<std::string> notes;  // one line each
};

// Reads the values tokenizer.*: "gpt2" (byte-level BPE with its merges) and "llama" (SentencePiece
// BPE, whose merges follow from its scores). `rows` is the height of the embedding, `context` the
// longest text. Throws BadInput naming file and key for what is wrong, CannotRun for a tokenizer or
// a pre-tokenizer that is not known.
GgufTokenizer read_gguf_tokenizer(const GgufFile& file, int64_t rows, int64_t context);

// How tokenizer.ggml.pre cuts a text into words.
struct GgufPreTokenizer {
  std::string_view pre_tokenizer;        // JSON of tokenizer.json
  std::string_view normalizer = "null";  // JSON
  bool ignore_merges = false;            // a word that is a token is that token
  bool add_bos = false;                  // unless the file says
};

// The row of a name, or null.
const GgufPreTokenizer* gguf_pre_tokenizer(std::string_view pre);
// All names, sorted.
std::vector<std::string_view> gguf_pre_tokenizer_names();

// The merges that reproduce SentencePiece's choice, best score first: every way to put a piece
// together from two others is one (transformers, convert_slow_tokenizer, generate_merges). Pieces
// and scores are by id.
std::vector<std::pair<std::string_view, std::string_view>> sentencepiece_merges(
    const std::vector<std::string_view>& pieces, const std::vector<double>& scores);

}  // namespace octet
