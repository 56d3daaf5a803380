#include "text/tokenizer.h"

#include <simdjson.h>

#include <algorithm>
#include <map>
#include <span>

#include "base/error.h"
#include "base/mapped_file.h"
#include "text/detokenizer.h"
#include "text/text_replace.h"
#include "text/tokenizer_config.h"
#include "text/tokenizer_json.h"
#include "text/utf8.h"

namespace octet {

struct Tokenizer::Impl {
  TokenizerParts parts;
  AddedTokenFinder raw;         // added tokens looked for in the text as given
  AddedTokenFinder normalized;  // and in the normalized text
  std::vector<bool> special;    // [id]
  std::map<int32_t, std::string>
      other_bytes;  // of added tokens whose normalized form is not their content
  std::string bos_text, eos_text;
  std::optional<int32_t> bos, eos;

  // [id] end of the bytes of a plain token in plain_bytes; empty for a byte-level vocabulary, which
  // holds bytes
  std::vector<size_t> plain_ends;
  std::string plain_bytes;

  Impl(TokenizerParts given, const TokenizerConfig& config);
  void split_added();
  void decode_plain();
  void encode_text(std::string_view text, std::string_view guard, std::vector<int32_t>& ids) const;
};

namespace {

// Far above published tokenizers, which have some tens of MB.
constexpr uint64_t kMaxFileBytes = uint64_t{1} << 30;

// tokenizer_config.json's bos and eos tokens count as special, whether or not tokenizer.json lists
// them as added.
void make_special(const std::optional<std::string>& token, TokenizerParts& parts) {
  if (!token || token->empty()) return;
  const auto listed =
      std::find_if(parts.added.begin(), parts.added.end(),
                   [&](const AddedToken& added) { return added.content == *token; });
  if (listed != parts.added.end()) {
    listed->special = true;
  } else if (const auto id = parts.vocab.find(*token)) {
    parts.added.push_back({.id = *id, .content = *token, .normalized = false, .special = true});
  }
}

// "[bos] text [eos]" where the config says so, or else what tokenizer.json says.
void apply_config(const TokenizerConfig& config, TokenizerParts& parts) {
  make_special(config.bos, parts);
  make_special(config.eos, parts);
  if (!config.add_bos && !config.add_eos) return;
  const auto id_of = [&](const std::optional<std::string>& token, std::string_view flag) {
    const auto id = token ? parts.vocab.find(*token) : std::nullopt;
    if (!id) {
      throw_error(
          Code::BadInput,
          fmt::format("/{}: true, but the token \"{}\" is not in the vocabulary of tokenizer.json",
                      flag, token.value_or("")));
    }
    return *id;
  };
  parts.post.clear();
  if (config.add_bos.value_or(false) && config.bos)
    parts.post.push_back(id_of(config.bos, "add_bos_token"));
  parts.post.push_back(kTextPiece);
  if (config.add_eos.value_or(false) && config.eos)
    parts.post.push_back(id_of(config.eos, "add_eos_token"));
}

void check_post(const TokenizerParts& parts) {
  for (const int32_t id : parts.post) {
    if (id != kTextPiece && !parts.vocab.has(id)) {
      throw_error(Code::BadInput, fmt::format("/post_processor: id {} has no token", id));
    }
  }
}

template <class F>
auto with_file(std::string_view name, F&& parse) {
  try {
    return parse();
  } catch (const Error& error) {
    throw error.with(name);
  }
}

// The bytes that a token text stands for in a vocabulary.
std::string bytes_of(const Vocab& vocab, std::string_view text) {
  std::string room(text.size(), '\0');
  return std::string(vocab.key(text, room.data()).bytes);
}

void check_utf8(std::string_view text) {
  const auto bad = find_invalid_utf8(text);
  if (!bad) return;
  throw_error(Code::BadInput,
              fmt::format("the text is not UTF-8: byte {} of {} is 0x{:02X}, which does not "
                          "begin a character there",
                          *bad, text.size(), static_cast<uint8_t>(text[*bad])),
              "convert the text to UTF-8, for example with iconv");
}

TokenizerParts parts_of(simdjson::padded_string_view json) {
  TokenizerParts parts = with_file("tokenizer.json", [&] { return parse_tokenizer_json(json); });
  with_file("tokenizer.json", [&] { check_post(parts); });
  return parts;
}

// The whole of a file of the model folder.
simdjson::padded_string read_file(const std::filesystem::path& path) {
  const RandomAccessFile file(path);
  if (file.size() > kMaxFileBytes) {
    throw_error(Code::BadInput,
                fmt::format("{} has {} bytes, expected at most {}", path.string(), file.size(),
                            kMaxFileBytes),
                "check that this is the right file");
  }
  simdjson::padded_string text(file.size());
  file.read(0, std::as_writable_bytes(std::span(text.data(), text.size())));
  return text;
}

}  // namespace

Tokenizer::Tokenizer(std::unique_ptr<const Impl> impl) : impl_(std::move(impl)) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

Tokenizer::Impl::Impl(TokenizerParts given, const TokenizerConfig& config)
    : parts(std::move(given)), special(static_cast<size_t>(parts.vocab.size())) {
  split_added();
  if (parts.vocab.spelling() == Spelling::Plain) decode_plain();
  bos_text = config.bos.value_or("");
  eos_text = config.eos.value_or("");
  if (config.bos) bos = parts.vocab.find(bos_text);
  if (config.eos) eos = parts.vocab.find(eos_text);
}

// Added tokens by where they are looked for.
void Tokenizer::Impl::split_added() {
  std::vector<AddedToken> in_raw, in_normalized;
  std::string buffer;
  for (AddedToken token : parts.added) {
    const bool same =
        !token.normalized || parts.normalizer.apply(token.content, buffer) == token.content;
    // The reference asks whether the text that a token decodes to is that of a special token.
    if (token.special && same) special[static_cast<size_t>(token.id)] = true;
    if (!same) {
      token.content = buffer;
      other_bytes.emplace(token.id, bytes_of(parts.vocab, buffer));
    }
    (token.normalized ? in_normalized : in_raw).push_back(std::move(token));
  }
  raw = AddedTokenFinder(std::move(in_raw));
  normalized = AddedTokenFinder(std::move(in_normalized));
}

// Takes every token through the decoder once.
void Tokenizer::Impl::decode_plain() {
  plain_ends.reserve(static_cast<size_t>(parts.vocab.size()));
  for (int32_t id = 0; id < parts.vocab.size(); ++id) {
    const auto other = other_bytes.find(id);
    const std::string_view text =
        other == other_bytes.end() ? parts.vocab.bytes(id) : std::string_view(other->second);
    if (parts.vocab.has(id)) plain_bytes += parts.decoder.bytes(text, false);
    plain_ends.push_back(plain_bytes.size());
  }
}

Tokenizer Tokenizer::load(const std::filesystem::path& dir) {
  const std::filesystem::path path = dir / "tokenizer.json",
                              config_path = dir / "tokenizer_config.json";
  if (!is_there(path)) {
    throw_error(Code::BadInput, fmt::format("\"{}\" has no tokenizer.json", dir.string()),
                "copy tokenizer.json and tokenizer_config.json from where the model was published");
  }
  const simdjson::padded_string json = read_file(path);
  try {
    if (!is_there(config_path)) return build(json, {});
    return build(json, read_file(config_path));
  } catch (const Error& error) {
    throw error.with(dir.string())
        .or_hint(
            "octet reads BPE tokenizers as transformers saves them: get the files again if they "
            "are "
            "damaged");
  }
}

Tokenizer Tokenizer::parse(std::string_view tokenizer_json,
                           std::string_view tokenizer_config_json) {
  return build(simdjson::padded_string(tokenizer_json), tokenizer_config_json);
}

Tokenizer Tokenizer::build(const simdjson::padded_string& json, std::string_view config_json) {
  TokenizerParts parts = parts_of(json);
  TokenizerConfig config;
  if (!config_json.empty()) {
    with_file("tokenizer_config.json", [&] {
      config = parse_tokenizer_config(config_json);
      apply_config(config, parts);
    });
  }
  return with_file("tokenizer.json", [&] {
    return Tokenizer(std::make_unique<const Impl>(std::move(parts), config));
  });
}

std::vector<int32_t> Tokenizer::encode(std::string_view utf8, bool add_special_tokens) const {
  check_utf8(utf8);
  std::vector<int32_t> text, ids;
  impl_->encode_text(utf8, {}, text);
  const PostTemplate& post = impl_->parts.post;
  if (post.size() == 1 && post[0] == kTextPiece) return text;
  for (const int32_t piece : post) {
    if (piece == kTextPiece) {
      ids.insert(ids.end(), text.begin(), text.end());
    } else if (add_special_tokens) {
      ids.push_back(piece);
    }
  }
  return ids;
}

std::vector<int32_t> Tokenizer::encode_guarded(std::string_view utf8,
                                               std::string_view guard) const {
  check_utf8(utf8);
  std::vector<int32_t> ids;
  impl_->encode_text(utf8, guard, ids);
  return ids;
}

// Added tokens of the text as given; the rest normalized; added tokens of that; the rest words;
// words to tokens. Guards go when all added tokens are found.
void Tokenizer::Impl::encode_text(std::string_view text, std::string_view guard,
                                  std::vector<int32_t>& ids) const {
  PreTokenizer::Worker worker(*parts.pre_tokenizer);
  Bpe::Scratch scratch;
  std::string buffer, unguarded;
  std::vector<TextPart> outer, inner;
  ids.reserve(text.size() / 3);
  raw.split(text, outer);
  for (const TextPart& part : outer) {
    if (part.id >= 0) {
      ids.push_back(part.id);
      continue;
    }
    inner.clear();
    normalized.split(parts.normalizer.apply(part.text, buffer), inner);
    for (const TextPart& piece : inner) {
      if (piece.id >= 0) {
        ids.push_back(piece.id);
        continue;
      }
      std::string_view plain = piece.text;
      if (!guard.empty()) plain = unguarded = replace_all(plain, guard, "");
      const bool begins = part.text.data() == text.data() && &piece == inner.data();
      worker.split(plain, begins, [&](std::string_view word) {
        parts.bpe->encode(parts.vocab, word, ids, scratch);
      });
    }
  }
}

std::string Tokenizer::decode(std::span<const int32_t> ids, bool skip_special_tokens) const {
  std::string text;
  Detokenizer detokenizer(*this, skip_special_tokens);
  for (const int32_t id : ids) detokenizer.push(id, text);
  detokenizer.flush(text);
  return text;
}

std::string_view Tokenizer::token_bytes(int32_t id) const {
  const std::vector<size_t>& ends = impl_->plain_ends;
  if (ends.empty()) return spelled(id);
  if (!has(id)) return {};
  const auto at = static_cast<size_t>(id);
  const size_t begin = at == 0 ? 0 : ends[at - 1];
  return std::string_view(impl_->plain_bytes).substr(begin, ends[at] - begin);
}

std::string_view Tokenizer::spelled(int32_t id) const {
  if (!impl_->other_bytes.empty()) {
    const auto other = impl_->other_bytes.find(id);
    if (other != impl_->other_bytes.end()) return other->second;
  }
  return impl_->parts.vocab.bytes(id);
}

const TokenDecoder& Tokenizer::decoder() const {
  return impl_->parts.decoder;
}
std::span<const AddedToken> Tokenizer::added_tokens() const {
  return impl_->parts.added;
}
bool Tokenizer::has(int32_t id) const {
  return impl_->parts.vocab.has(id);
}

std::optional<int32_t> Tokenizer::id_of(std::string_view token) const {
  return impl_->parts.vocab.find(token);
}
bool Tokenizer::is_special(int32_t id) const {
  return id >= 0 && id < size() && impl_->special[static_cast<size_t>(id)];
}
int32_t Tokenizer::size() const {
  return impl_->parts.vocab.size();
}
std::optional<int32_t> Tokenizer::bos() const {
  return impl_->bos;
}
std::optional<int32_t> Tokenizer::eos() const {
  return impl_->eos;
}
std::string_view Tokenizer::bos_text() const {
  return impl_->bos_text;
}
std::string_view Tokenizer::eos_text() const {
  return impl_->eos_text;
}

}  // namespace octet
