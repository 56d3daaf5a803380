#pragma once
// Text to token ids and back, exactly as Hugging Face tokenizers does it for BPE: byte-level (GPT-2
// and its heirs) and plain (SentencePiece style, as Llama 2).
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace simdjson {
struct padded_string;
}

namespace octet {

struct AddedToken;
struct TokenDecoder;

// A BPE tokenizer. Immutable and cheap to move; any number of threads may use one.
class Tokenizer {
 public:
  // Reads tokenizer.json of a model folder, and from its tokenizer_config.json, if there is one,
  // bos_token, eos_token, add_bos_token and add_eos_token. The latter two, where given, replace the
  // post-processor of tokenizer.json by
  // "[bos] text [eos]", as transformers does; truncation and padding settings are ignored.
  // Throws BadInput naming the file and the JSON pointer of what is wrong or not supported.
  static Tokenizer load(const std::filesystem::path& dir);
  // The same from the contents of the two files; an empty config stands for none.
  static Tokenizer parse(std::string_view tokenizer_json,
                         std::string_view tokenizer_config_json = {});

  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  // The ids of a text. Added tokens in it are recognised; `add_special_tokens` puts around it what
  // the post-processor says (such as a begin-of-text token). Throws BadInput naming the byte where
  // the text is not UTF-8.
  std::vector<int32_t> encode(std::string_view utf8, bool add_special_tokens = true) const;

  // The ids of a text in which `guard`, one character that stands for nothing else, parts what
  // would be an added token without it; guards leave no trace in the ids. Nothing is put around the
  // text. Throws as encode() does.
  std::vector<int32_t> encode_guarded(std::string_view utf8, std::string_view guard) const;

  // The text of some ids. Bytes that are not UTF-8 become U+FFFD, one for each maximal ill-formed
  // part. Ids without a token (holes, or the padding of a model's vocabulary) give nothing.
  std::string decode(std::span<const int32_t> ids, bool skip_special_tokens) const;

  // The raw bytes a token stands for, not always whole characters; empty for an id without a token.
  // At the beginning of a text a plain token may give less: see decoder().
  std::string_view token_bytes(int32_t id) const;

  // The id of a token, as tokenizer.json writes it ("<|im_end|>", "\u0120the").
  std::optional<int32_t> id_of(std::string_view token) const;

  // What tokens become in a text; streams of tokens follow it too (detokenizer.h).
  const TokenDecoder& decoder() const;
  // The token as the vocabulary writes it, for decoder(); empty for an id without a token.
  std::string_view spelled(int32_t id) const;

  // The texts that become one token wherever they stand.
  std::span<const AddedToken> added_tokens() const;

  // Whether there is a token of this id.
  bool has(int32_t id) const;
  // Whether decode() leaves the token out on request; false for an id without a token.
  bool is_special(int32_t id) const;

  // One past the highest id that has a token. A model's vocabulary may be larger.
  int32_t size() const;

  // The tokens that tokenizer_config.json names as begin and end of a sequence; nullopt where it
  // names none, or one that is not in the vocabulary.
  std::optional<int32_t> bos() const;
  std::optional<int32_t> eos() const;
  // Their texts, for chat templates; empty for none.
  std::string_view bos_text() const;
  std::string_view eos_text() const;

 private:
  struct Impl;
  explicit Tokenizer(std::unique_ptr<const Impl> impl);
  static Tokenizer build(const simdjson::padded_string& json, std::string_view config_json);

  std::unique_ptr<const Impl> impl_;
};

}  // namespace octet
