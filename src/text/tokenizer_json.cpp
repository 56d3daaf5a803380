#include "text/tokenizer_json.h"

#include <simdjson.h>

#include <map>
#include <type_traits>

#include "base/error.h"
#include "text/json_shown.h"

namespace octet {
namespace {

namespace ondemand = simdjson::ondemand;

[[noreturn]] void fail(std::string_view where, std::string_view what) {
  throw_error(Code::BadInput, fmt::format("{}: {}", where, what));
}

std::string text_of(std::string_view where) {
  return std::string(where);
}
template <class F>
requires std::is_invocable_r_v<std::string, F> std::string text_of(const F& where) {
  return where();
}

// The value of a result, or BadInput with the place and the parser's words. `where` is a text, or
// makes one: places inside long lists are spelled only when something is wrong.
template <class T, class Where>
T take(simdjson::simdjson_result<T> result, const Where& where, std::string_view expected) {
  T value;
  if (const auto error = std::move(result).get(value)) {
    if (error == simdjson::INCORRECT_TYPE)
      fail(text_of(where), fmt::format("expected {}", expected));
    fail(text_of(where), fmt::format("expected {}: {}", expected, simdjson::error_message(error)));
  }
  return value;
}

// A value as a T; a value of another kind is shown.
template <class T, class Where>
T read(ondemand::value value, const Where& where, std::string_view expected) {
  T result;
  const auto error = value.get(result);
  if (error == simdjson::INCORRECT_TYPE || error == simdjson::NUMBER_ERROR)
    fail(text_of(where), fmt::format("expected {}, got {}", expected, shown_json(value)));
  if (error)
    fail(text_of(where), fmt::format("expected {}: {}", expected, simdjson::error_message(error)));
  return result;
}

bool is_null(ondemand::value value, std::string_view where) {
  return take(value.is_null(), where, "a value");
}

// The JSON text of an object or array, or "null".
std::string raw_text(ondemand::value value, std::string_view where, std::string_view expected) {
  const auto type = take(value.type(), where, "a value");
  std::string_view text = "null";
  if (type == ondemand::json_type::object) {
    ondemand::object object = read<ondemand::object>(value, where, "an object");
    text = take(object.raw_json(), where, "an object");
  } else if (type == ondemand::json_type::array) {
    ondemand::array array = read<ondemand::array>(value, where, "an array");
    text = take(array.raw_json(), where, "an array");
  } else if (type != ondemand::json_type::null) {
    fail(where, fmt::format("expected {}, got {}", expected, shown_json(value)));
  }
  return std::string(text);
}

template <class Where>
int32_t token_id(ondemand::value value, size_t limit, const Where& where) {
  const auto id = read<uint64_t>(value, where, "a token id");
  // Room is made up to the highest id, so ids must be in proportion to the file that names them.
  if (id > INT32_MAX || id >= limit) {
    fail(text_of(where), fmt::format("id {} is out of range for a file of {} bytes", id, limit));
  }
  return static_cast<int32_t>(id);
}

template <class F>
void with_place(std::string_view where, F&& act) {
  try {
    act();
  } catch (const Error& error) {
    throw error.with(where);
  }
}

void read_vocab(ondemand::value value, size_t limit, Vocab& vocab) {
  constexpr std::string_view kWhere = "/model/vocab";
  ondemand::object entries = read<ondemand::object>(value, kWhere, "an object of token to id");
  vocab.reserve(limit / 32,
                limit / 8);  // published files have 40 to 70 bytes per token, merges included
  for (auto entry : entries) {
    ondemand::field field = take(std::move(entry), kWhere, "a token");
    const std::string_view token = take(field.unescaped_key(), kWhere, "a token");
    uint64_t id = 0;
    if (field.value().get_uint64().get(id) || id > INT32_MAX || id >= limit) {
      const std::string where = fmt::format("{}/{}", kWhere, token);
      fail(where, id == 0 ? fmt::format("expected a token id, got {}", shown_json(field.value()))
                          : fmt::format("id {} is out of range for a file of {} bytes", id, limit));
    }
    with_place(kWhere, [&] { vocab.add(token, static_cast<int32_t>(id)); });
  }
  with_place(kWhere, [&] { vocab.index(); });
}

// One merge: "left right", or ["left", "right"]; nullopt for the first line of a merges.txt.
std::optional<Bpe::TokenPair> read_merge(ondemand::value value, size_t rank) {
  const auto where = [&] { return fmt::format("/model/merges/{}", rank); };
  std::string_view whole;
  if (!value.get_string().get(whole)) {
    if (whole.starts_with("#version")) return std::nullopt;
    const size_t space = whole.find(' ');
    if (space == std::string_view::npos || whole.find(' ', space + 1) != std::string_view::npos) {
      fail(where(), fmt::format("expected two tokens with one space between, got \"{}\"", whole));
    }
    return Bpe::TokenPair{whole.substr(0, space), whole.substr(space + 1)};
  }
  ondemand::array pair;
  if (value.get_array().get(pair))
    fail(where(), fmt::format("expected \"left right\" or [\"left\", \"right\"], got {}",
                              shown_json(value)));
  std::string_view parts[2];
  size_t count = 0;
  for (auto part : pair) {
    if (count == 2) fail(where(), "expected two tokens, got more");
    parts[count++] = read<std::string_view>(take(part, where, "a token"), where, "a token");
  }
  if (count != 2) fail(where(), fmt::format("expected two tokens, got {}", count));
  return Bpe::TokenPair{parts[0], parts[1]};
}

void read_merges(ondemand::value value, const Vocab& vocab, std::optional<Bpe>& bpe) {
  bpe.emplace(vocab, vocab.count());
  std::vector<Bpe::TokenPair> block;  // their texts lie in the parser
  block.reserve(Bpe::kBlock);
  const auto add_block = [&] {
    with_place("/model/merges", [&] { bpe->merge(vocab, block); });
    block.clear();
  };
  for (auto merge : read<ondemand::array>(value, "/model/merges", "an array")) {
    const size_t rank = bpe->merge_count() + block.size();
    const auto pair = read_merge(take(merge, "/model/merges", "a merge"), rank);
    if (pair) block.push_back(*pair);
    if (block.size() == Bpe::kBlock) add_block();
  }
  add_block();
}

// What "model" says besides vocabulary and merges.
struct ModelFlags {
  bool ignore_merges = false, fuse_unknown = false, byte_fallback = false;
  std::optional<std::string> unknown;
};

void read_text_that_must_be_empty(ondemand::value value, std::string_view where) {
  if (is_null(value, where)) return;
  const std::string_view text = read<std::string_view>(value, where, "a string or null");
  if (!text.empty()) fail(where, fmt::format("\"{}\" is not supported, only none", text));
}

bool read_flag(ondemand::value value, std::string_view where) {
  return !is_null(value, where) && read<bool>(value, where, "true or false");
}

void read_model_field(std::string_view key, ondemand::value value, ModelFlags& flags) {
  const std::string where = fmt::format("/model/{}", key);
  if (key == "type") {
    const std::string_view type = read<std::string_view>(value, where, "a string");
    if (type != "BPE") fail(where, fmt::format("model \"{}\" is not supported (known: BPE)", type));
  } else if (key == "dropout") {
    if (!is_null(value, where) && read<double>(value, where, "a number or null") != 0) {
      fail(where, "dropout makes tokens random and is not supported; set it to null");
    }
  } else if (key == "continuing_subword_prefix" || key == "end_of_word_suffix") {
    read_text_that_must_be_empty(value, where);
  } else if (key == "unk_token") {
    if (!is_null(value, where))
      flags.unknown = std::string(read<std::string_view>(value, where, "a string or null"));
  } else if (key == "ignore_merges") {
    flags.ignore_merges = read_flag(value, where);
  } else if (key == "fuse_unk") {
    flags.fuse_unknown = read_flag(value, where);
  } else if (key == "byte_fallback") {
    flags.byte_fallback = read_flag(value, where);
  }
}

// [byte] token "<0xNN>", -1 for none.
std::vector<int32_t> byte_tokens(const Vocab& vocab) {
  std::vector<int32_t> tokens;
  for (int byte = 0; byte < 256; ++byte)
    tokens.push_back(vocab.find(fmt::format("<0x{:02X}>", byte)).value_or(-1));
  return tokens;
}

// What stands in for symbols without a token. Nothing of it matters where all 256 bytes of a
// byte-level vocabulary have one, as published files do.
void finish_model(const ModelFlags& flags, const Vocab& vocab, Bpe& bpe) {
  BpeOptions options{flags.ignore_merges, flags.fuse_unknown, -1};
  const bool plain = vocab.spelling() == Spelling::Plain;
  const uint32_t missing = plain ? 0 : bpe.first_missing_byte();
  if (flags.byte_fallback && plain) {
    options.byte_tokens = byte_tokens(vocab);
  } else if (flags.byte_fallback && missing < 256) {
    fail("/model/byte_fallback",
         fmt::format("true is not supported where byte 0x{:02X} has no token", missing));
  }
  if (missing < 256 && flags.unknown) {
    const auto id = vocab.find(*flags.unknown);
    if (!id)
      fail("/model/unk_token", fmt::format("\"{}\" is not in the vocabulary", *flags.unknown));
    options.unknown_id = *id;
  }
  bpe.set_options(std::move(options));
}

void read_model(ondemand::value value, size_t limit, TokenizerParts& parts) {
  ModelFlags flags;
  bool has_vocab = false;
  std::string early_merges;  // of a file that has them before the vocabulary
  ondemand::object model = read<ondemand::object>(value, "/model", "an object");
  for (auto entry : model) {
    ondemand::field field = take(std::move(entry), "/model", "a field");
    const std::string key(take(field.unescaped_key(), "/model", "a key"));
    if (key == "vocab") {
      if (has_vocab) fail("/model/vocab", "given twice");
      read_vocab(field.value(), limit, parts.vocab);
      has_vocab = true;
    } else if (key == "merges") {
      if (parts.bpe || !early_merges.empty()) fail("/model/merges", "given twice");
      if (has_vocab) {
        read_merges(field.value(), parts.vocab, parts.bpe);
      } else {
        early_merges = raw_text(field.value(), "/model/merges", "an array");
      }
    } else {
      read_model_field(key, field.value(), flags);
    }
  }
  if (!has_vocab) fail("/model", "\"vocab\" is missing");
  if (!early_merges.empty()) {
    const simdjson::padded_string text(early_merges);
    ondemand::parser parser;
    ondemand::document document = take(parser.iterate(text), "/model/merges", "an array");
    read_merges(take(document.get_value(), "/model/merges", "an array"), parts.vocab, parts.bpe);
  }
  if (!parts.bpe) fail("/model", "\"merges\" is missing");
  finish_model(flags, parts.vocab, *parts.bpe);
}

AddedToken read_added_token(ondemand::value value, size_t limit, const std::string& where) {
  AddedToken token;
  bool has_id = false, has_content = false;
  ondemand::object object = read<ondemand::object>(value, where, "an object");
  for (auto entry : object) {
    ondemand::field field = take(std::move(entry), where, "a field");
    const std::string_view key = take(field.unescaped_key(), where, "a key");
    const auto at = [&] { return fmt::format("{}/{}", where, key); };
    const auto flag = [&] { return read<bool>(field.value(), at, "true or false"); };
    if (key == "id") {
      token.id = token_id(field.value(), limit, at);
      has_id = true;
    } else if (key == "content") {
      token.content = std::string(read<std::string_view>(field.value(), at, "a string"));
      has_content = true;
    } else if (key == "single_word") {
      token.single_word = flag();
    } else if (key == "lstrip") {
      token.lstrip = flag();
    } else if (key == "rstrip") {
      token.rstrip = flag();
    } else if (key == "normalized") {
      token.normalized = flag();
    } else if (key == "special") {
      token.special = flag();
    }
  }
  if (!has_id || !has_content) fail(where, "\"id\" or \"content\" is missing");
  return token;
}

// The reference numbers added tokens by itself: one whose text the model knows gets the model's id,
// every other the next free one. A file that says otherwise would mean other tokens there than
// here, so it is refused.
void add_to_vocab(const AddedToken& token, int32_t& next_id, Vocab& vocab,
                  const std::string& where) {
  const auto known = vocab.find(token.content);
  const int32_t expected = known ? *known : next_id++;
  if (token.id != expected) {
    fail(where,
         fmt::format("added token \"{}\" has id {}, expected {} ({})", token.content, token.id,
                     expected, known ? "its id in the vocabulary" : "the next free one"));
  }
  if (!known) with_place(where, [&] { vocab.add(token.content, token.id); });
}

void read_added_tokens(ondemand::value value, size_t limit, std::vector<AddedToken>& added) {
  ondemand::array array = read<ondemand::array>(value, "/added_tokens", "an array");
  for (auto entry : array) {
    const std::string where = fmt::format("/added_tokens/{}", added.size());
    added.push_back(read_added_token(take(entry, where, "an added token"), limit, where));
  }
}

void finish_added_tokens(TokenizerParts& parts) {
  auto next_id = static_cast<int32_t>(parts.vocab.count());
  std::vector<AddedToken> kept;
  std::map<std::string_view, const AddedToken*> by_content;
  for (size_t i = 0; i < parts.added.size(); ++i) {
    const AddedToken& token = parts.added[i];
    const std::string where = fmt::format("/added_tokens/{}", i);
    if (token.content.empty()) fail(where, "the content is empty");
    const auto [earlier, is_new] = by_content.emplace(token.content, &token);
    if (!is_new && *earlier->second != token) {
      fail(where, fmt::format("\"{}\" is listed before with other values", token.content));
    }
    if (!is_new) continue;
    add_to_vocab(token, next_id, parts.vocab, where);
    kept.push_back(token);
  }
  parts.added = std::move(kept);
}

// The components in the order of the file, each as its JSON text.
using Components = std::map<std::string, std::string, std::less<>>;

// Whether the vocabulary is a byte-level one: its pre-tokenizer says so.
void read_pre_tokenizer(const std::string& json, TokenizerParts& parts) {
  if (parts.pre_tokenizer) fail("/pre_tokenizer", "given twice");
  parts.pre_tokenizer = parse_pre_tokenizer(json);
  parts.vocab = Vocab(parts.pre_tokenizer->byte_level() ? Spelling::ByteLevel : Spelling::Plain);
}

// "model" of a file that has it before its pre-tokenizer.
void read_late_model(ondemand::document& document, size_t limit, TokenizerParts& parts) {
  document.rewind();
  read_model(take(document.find_field_unordered("model"), "/model", "an object"), limit, parts);
}

void read_version(ondemand::value value) {
  const std::string_view version = read<std::string_view>(value, "/version", "a string");
  if (version != "1.0") fail("/version", fmt::format("\"{}\" is not known, only \"1.0\"", version));
}

}  // namespace

TokenizerParts parse_tokenizer_json(simdjson::padded_string_view json) {
  TokenizerParts parts;
  Components components = {{"normalizer", "null"},
                           {"pre_tokenizer", "null"},
                           {"post_processor", "null"},
                           {"decoder", "null"}};
  bool has_model = false;
  ondemand::parser parser;
  ondemand::document document = take(parser.iterate(json), "/", "JSON");
  ondemand::object root = take(document.get_object(), "/", "an object");
  for (auto entry : root) {
    ondemand::field field = take(std::move(entry), "/", "a field");
    const std::string key(take(field.unescaped_key(), "/", "a key"));
    const auto component = components.find(key);
    if (component != components.end()) {
      component->second = raw_text(field.value(), "/" + key, "an object or null");
      if (key == "pre_tokenizer") read_pre_tokenizer(component->second, parts);
    } else if (key == "version") {
      read_version(field.value());
    } else if (key == "added_tokens") {
      if (!parts.added.empty()) fail("/added_tokens", "given twice");
      read_added_tokens(field.value(), json.size(), parts.added);
    } else if (key == "model") {
      if (std::exchange(has_model, true)) fail("/model", "given twice");
      if (parts.pre_tokenizer) read_model(field.value(), json.size(), parts);
    }
  }
  if (!document.current_location().error()) fail("/", "something follows the object");
  if (!has_model) fail("/", "\"model\" is missing");
  if (!parts.pre_tokenizer) read_pre_tokenizer("null", parts);
  if (!parts.bpe) read_late_model(document, json.size(), parts);
  finish_added_tokens(parts);
  parts.normalizer = parse_normalizer(components["normalizer"]);
  parts.post = parse_post_processor(components["post_processor"]);
  parts.decoder = parse_decoder(components["decoder"], parts.vocab.spelling());
  return parts;
}

}  // namespace octet
