#include "convert/gguf_tokenizer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "base/error.h"
#include "base/printable.h"
#include "text/chat_template.h"
#include "text/utf8.h"

namespace octet {
namespace {

using Json = nlohmann::ordered_json;

// Values of tokenizer.ggml.token_type (llama.h, llama_token_type).
enum class TokenType : int64_t { Normal = 1, Unknown, Control, UserDefined, Unused, Byte };

// The longest token that merges are derived for: published ones have under 100 bytes, and the cost
// grows with the square.
constexpr size_t kMaxPieceBytes = 1024;

std::string key(std::string_view rest) {
  return fmt::format("tokenizer.ggml.{}", rest);
}

void check_utf8(const GgufFile& file, std::string_view subject, std::string_view text) {
  if (find_invalid_utf8(text)) {
    file.fail(fmt::format("{} \"{}\" is not UTF-8", subject, printable_name(text.substr(0, 80))));
  }
}

// The vocabulary of a file: texts and types by id.
class Vocabulary {
 public:
  Vocabulary(const GgufFile& file, int64_t rows) : file_(file) {
    const GgufStrings* tokens = file.find_strings(key("tokens"));
    if (tokens == nullptr || tokens->empty()) {
      file.fail(fmt::format("has no value {}", key("tokens")),
                "the file holds no tokenizer; convert the model again with a current llama.cpp");
    }
    if (static_cast<int64_t>(tokens->size()) > rows) {
      file.fail(fmt::format("{} has {} tokens, token_embd.weight {} rows", key("tokens"),
                            tokens->size(), rows));
    }
    tokens_ = *tokens;
    read_types();
    // Rows that pad the vocabulary are no tokens: nothing could be encoded to them.
    while (!tokens_.empty() && types_[tokens_.size() - 1] == TokenType::Unused) tokens_.pop_back();
    check_tokens();
  }

  size_t size() const { return tokens_.size(); }
  std::string_view token(size_t id) const { return tokens_[id]; }
  TokenType type(size_t id) const { return types_[id]; }

  // An id of a special token, or nothing when the file has none.
  std::optional<int64_t> special(std::string_view name) const {
    const std::string where = key(fmt::format("{}_token_id", name));
    // Some converters write "none" as -1 in 32 bits.
    if (file_.find_integer(where, INT64_MIN, INT64_MAX) == int64_t{UINT32_MAX}) return std::nullopt;
    return file_.find_integer(where, 0, static_cast<int64_t>(tokens_.size()) - 1);
  }

 private:
  void read_types() {
    types_.assign(tokens_.size(), TokenType::Normal);
    const GgufIntegers* types = file_.find_integers(key("token_type"));
    if (types == nullptr) return;
    if (types->size() != tokens_.size()) {
      file_.fail(fmt::format("{} has {} items for {} tokens", key("token_type"), types->size(),
                             tokens_.size()));
    }
    for (size_t i = 0; i < types->size(); ++i) {
      const int64_t type = (*types)[i];
      if (type < 1 || type > 6) {
        file_.fail(fmt::format("{}: item {} is {}, expected 1 to 6", key("token_type"), i, type));
      }
      types_[i] = static_cast<TokenType>(type);
    }
  }

  void check_tokens() const {
    std::unordered_set<std::string_view> seen;
    seen.reserve(tokens_.size());
    for (const std::string_view token : tokens_) {
      check_utf8(file_, key("tokens") + ":", token);
      if (!seen.insert(token).second) {
        file_.fail(fmt::format("{}: \"{}\" is there twice", key("tokens"), printable_name(token)));
      }
    }
  }

  const GgufFile& file_;
  GgufStrings tokens_;
  std::vector<TokenType> types_;
};

// The members that every added token has; `normalized` is off: the text must be there as it is.
Json added_token(std::string_view content, bool special) {
  return {{"content", content}, {"single_word", false}, {"lstrip", false},
          {"rstrip", false},    {"normalized", false},  {"special", special}};
}

// Tokens that are found in a text before it is cut into words.
bool is_added(TokenType type) {
  return type == TokenType::Control || type == TokenType::UserDefined || type == TokenType::Unknown;
}

Json added_tokens(const Vocabulary& vocabulary) {
  Json list = Json::array();
  for (size_t id = 0; id < vocabulary.size(); ++id) {
    const TokenType type = vocabulary.type(id);
    if (!is_added(type)) continue;
    Json token{{"id", id}};
    token.update(added_token(vocabulary.token(id), type != TokenType::UserDefined));
    list.push_back(std::move(token));
  }
  return list;
}

// Puts the ids of special tokens around the text; null when nothing is added.
Json post_processor(const GgufFile& file, const Vocabulary& vocabulary, bool add_bos,
                    bool add_eos) {
  Json single = Json::array();
  Json specials = Json::object();
  const auto add = [&](std::string_view name) {
    const auto id = vocabulary.special(name);
    if (!id) {
      file.fail(fmt::format("says that {0} is added to every text, and has no {1}", name,
                            key(fmt::format("{}_token_id", name))));
    }
    const std::string token(vocabulary.token(static_cast<size_t>(*id)));
    single.push_back({{"SpecialToken", {{"id", token}, {"type_id", 0}}}});
    specials[token] = {
        {"id", token}, {"ids", Json::array({*id})}, {"tokens", Json::array({token})}};
  };
  if (add_bos) add("bos");
  single.push_back({{"Sequence", {{"id", "A"}, {"type_id", 0}}}});
  if (add_eos) add("eos");
  if (!add_bos && !add_eos) return nullptr;
  Json pair = single;
  for (Json piece : single) {
    if (piece.contains("Sequence")) piece["Sequence"]["id"] = "B";
    pair.push_back(std::move(piece));
  }
  return {{"type", "TemplateProcessing"},
          {"single", std::move(single)},
          {"pair", std::move(pair)},
          {"special_tokens", std::move(specials)}};
}

Json vocab_json(const Vocabulary& vocabulary) {
  Json::object_t vocab;
  vocab.reserve(vocabulary.size());
  // Not through operator[], which would search all the tokens before: they are known to differ.
  for (size_t id = 0; id < vocabulary.size(); ++id) {
    vocab.emplace_back(std::string(vocabulary.token(id)), Json(id));
  }
  return vocab;
}

// The model's part of tokenizer.json.
struct ModelParts {
  Json merges;
  Json unknown;  // unk_token
  bool byte_fallback = false, ignore_merges = false;
};

Json model_json(const Vocabulary& vocabulary, ModelParts parts) {
  return {{"type", "BPE"},
          {"dropout", nullptr},
          {"unk_token", std::move(parts.unknown)},
          {"continuing_subword_prefix", nullptr},
          {"end_of_word_suffix", nullptr},
          {"fuse_unk", parts.byte_fallback},
          {"byte_fallback", parts.byte_fallback},
          {"ignore_merges", parts.ignore_merges},
          {"vocab", vocab_json(vocabulary)},
          {"merges", std::move(parts.merges)}};
}

struct Components {
  Json normalizer, pre_tokenizer, decoder;
  ModelParts model;
  bool add_bos = false;
};

// "gpt2": byte-level BPE.
Components byte_level(const GgufFile& file, std::vector<std::string>& notes) {
  Components parts;
  const auto given = file.find_text(key("pre"));
  const std::string_view pre = given.value_or("default");
  const GgufPreTokenizer* row = gguf_pre_tokenizer(pre);
  if (row == nullptr) {
    throw_error(Code::CannotRun,
                fmt::format("{}: {} \"{}\" is not known", file.path().string(), key("pre"),
                            printable_name(pre)),
                fmt::format("known: {}", fmt::join(gguf_pre_tokenizer_names(), ", ")));
  }
  if (!given) {
    notes.push_back(fmt::format(
        "{} is absent: texts are cut as llama.cpp cuts them by default, which may not be how the "
        "model was trained",
        key("pre")));
  }
  parts.normalizer = Json::parse(row->normalizer);
  parts.pre_tokenizer = Json::parse(row->pre_tokenizer);
  parts.decoder = {{"type", "ByteLevel"},
                   {"trim_offsets", true},
                   {"use_regex", true},
                   {"add_prefix_space", true}};
  parts.add_bos = row->add_bos;
  parts.model.ignore_merges = row->ignore_merges;
  const GgufStrings* merges = file.find_strings(key("merges"));
  if (merges == nullptr) file.fail(fmt::format("has no value {}", key("merges")));
  parts.model.merges = Json::array();
  for (const std::string_view merge : *merges) {
    check_utf8(file, key("merges") + ":", merge);
    parts.model.merges.push_back(merge);
  }
  return parts;
}

// Pieces that text can become, by id; empty ones stand for the others.
std::vector<std::string_view> text_pieces(const GgufFile& file, const Vocabulary& vocabulary) {
  std::vector<std::string_view> pieces(vocabulary.size());
  for (size_t id = 0; id < vocabulary.size(); ++id) {
    const std::string_view token = vocabulary.token(id);
    if (token.size() > kMaxPieceBytes) {
      file.fail(fmt::format("{}: token {} has {} bytes, expected at most {}", key("tokens"), id,
                            token.size(), kMaxPieceBytes));
    }
    if (vocabulary.type(id) == TokenType::Normal) pieces[id] = token;
  }
  return pieces;
}

// "llama": SentencePiece BPE with a piece for every byte.
Components sentencepiece(const GgufFile& file, const Vocabulary& vocabulary) {
  for (const std::string_view name : {"precompiled_charsmap", "remove_extra_whitespaces"}) {
    const GgufValue* value = file.find_value(key(name));
    if (value == nullptr || (std::holds_alternative<bool>(*value) && !std::get<bool>(*value))) {
      continue;
    }
    throw_error(
        Code::CannotRun,
        fmt::format("{}: {} is set, which is not supported", file.path().string(), key(name)),
        "only SentencePiece tokenizers without a normalisation of their own are imported");
  }
  const GgufNumbers* scores = file.find_numbers(key("scores"));
  if (scores == nullptr || scores->size() < vocabulary.size()) {
    file.fail(fmt::format("{} has {} items for {} tokens", key("scores"),
                          scores == nullptr ? 0 : scores->size(), vocabulary.size()),
              "without the scores of its pieces the tokenizer cannot be rebuilt");
  }
  for (size_t id = 0; id < vocabulary.size(); ++id) {
    if (std::isfinite((*scores)[id])) continue;
    file.fail(fmt::format("{}: item {} is {}", key("scores"), id, (*scores)[id]));
  }
  const auto pieces = text_pieces(file, vocabulary);
  Components parts;
  parts.model.merges = Json::array();
  for (const auto& [left, right] : sentencepiece_merges(
           pieces, {scores->begin(), scores->begin() + static_cast<ptrdiff_t>(pieces.size())})) {
    parts.model.merges.push_back(Json::array({left, right}));
  }
  if (const auto unknown = vocabulary.special("unknown")) {
    parts.model.unknown = vocabulary.token(static_cast<size_t>(*unknown));
  }
  parts.model.byte_fallback = true;
  constexpr const char* kSpace = "\xE2\x96\x81";  // U+2581, what SentencePiece writes for a space
  const bool prefix = file.find_bool(key("add_space_prefix")).value_or(true);
  const Json replace{{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", kSpace}};
  Json normalizers = Json::array();
  if (prefix) normalizers.push_back({{"type", "Prepend"}, {"prepend", kSpace}});
  normalizers.push_back(replace);
  parts.normalizer = {{"type", "Sequence"}, {"normalizers", std::move(normalizers)}};
  Json decoders = Json::array();
  decoders.push_back({{"type", "Replace"}, {"pattern", {{"String", kSpace}}}, {"content", " "}});
  decoders.push_back({{"type", "ByteFallback"}});
  decoders.push_back({{"type", "Fuse"}});
  if (prefix) {
    decoders.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  }
  parts.decoder = {{"type", "Sequence"}, {"decoders", std::move(decoders)}};
  parts.add_bos = true;
  return parts;
}

Components read_components(const GgufFile& file, const Vocabulary& vocabulary,
                           std::vector<std::string>& notes) {
  const std::string_view model = file.text(key("model"));
  if (model == "gpt2") return byte_level(file, notes);
  if (model == "llama") return sentencepiece(file, vocabulary);
  throw_error(Code::CannotRun,
              fmt::format("{}: {} \"{}\" is not one that octet imports", file.path().string(),
                          key("model"), printable_name(model)),
              "known: gpt2 (byte-level BPE), llama (SentencePiece BPE)");
}

// Why a chat template does not compile; nothing when it does.
std::optional<std::string> template_problem(std::string_view source) {
  try {
    ChatTemplate::from_source(source);
  } catch (const Error& error) {
    if (error.code() != Code::BadInput) throw;
    return error.message();
  }
  return std::nullopt;
}

// One template as a string, several as a list of name and template: as tokenizer_config.json has
// them; null for none.
Json chat_templates(const GgufFile& file, std::vector<std::string>& notes) {
  constexpr std::string_view kKey = "tokenizer.chat_template";
  Json list = Json::array();
  for (const std::string_view name : file.keys()) {
    if (!name.starts_with(kKey) || (name != kKey && name[kKey.size()] != '.')) continue;
    const std::string_view text = *file.find_text(name);
    check_utf8(file, name, name);
    check_utf8(file, name, text);
    if (const auto wrong = template_problem(text)) {
      notes.push_back(fmt::format("{} cannot be used: {}; completions work, conversations do not",
                                  printable_name(name), *wrong));
    }
    list.push_back(
        {{"name", name == kKey ? "default" : name.substr(kKey.size() + 1)}, {"template", text}});
  }
  if (list.empty()) return nullptr;
  return list.size() == 1 && list[0]["name"] == "default" ? list[0]["template"] : list;
}

// The ids that end an answer: one number, or a list of several without doubles.
Json end_ids(const Vocabulary& vocabulary) {
  Json ids = Json::array();
  for (const std::string_view name : {"eos", "eot", "eom"}) {
    const auto id = vocabulary.special(name);
    if (id && std::find(ids.begin(), ids.end(), *id) == ids.end()) ids.push_back(*id);
  }
  if (ids.empty()) return nullptr;
  return ids.size() == 1 ? ids[0] : ids;
}

}  // namespace

GgufTokenizer read_gguf_tokenizer(const GgufFile& file, int64_t rows, int64_t context) {
  const Vocabulary vocabulary(file, rows);
  GgufTokenizer result;
  Components parts = read_components(file, vocabulary, result.notes);
  if (!file.has(key("token_type"))) {
    result.notes.push_back(fmt::format(
        "{} is absent: no token is special or added, their texts are cut like any other",
        key("token_type")));
  }
  const bool add_bos = file.find_bool(key("add_bos_token")).value_or(parts.add_bos);
  const bool add_eos = file.find_bool(key("add_eos_token")).value_or(false);
  const Json added = added_tokens(vocabulary);
  const Json tokenizer{{"version", "1.0"},
                       {"truncation", nullptr},
                       {"padding", nullptr},
                       {"added_tokens", added},
                       {"normalizer", std::move(parts.normalizer)},
                       {"pre_tokenizer", std::move(parts.pre_tokenizer)},
                       {"post_processor", post_processor(file, vocabulary, add_bos, add_eos)},
                       {"decoder", std::move(parts.decoder)},
                       {"model", model_json(vocabulary, std::move(parts.model))}};
  result.tokenizer_json = tokenizer.dump(2) + "\n";

  Json config{{"add_bos_token", add_bos}, {"add_eos_token", add_eos}, {"add_prefix_space", false}};
  Json decoder = Json::object();
  for (Json token : added) {
    const std::string id = std::to_string(token["id"].get<int64_t>());
    token.erase("id");
    decoder[id] = std::move(token);
  }
  config["added_tokens_decoder"] = std::move(decoder);
  constexpr std::pair<std::string_view, const char*> kNames[] = {{"bos", "bos_token"},
                                                                 {"eos", "eos_token"},
                                                                 {"padding", "pad_token"},
                                                                 {"unknown", "unk_token"}};
  for (const auto& [name, field] : kNames) {
    if (const auto id = vocabulary.special(name)) {
      config[field] = vocabulary.token(static_cast<size_t>(*id));
    }
  }
  Json templates = chat_templates(file, result.notes);
  if (!templates.is_null()) config["chat_template"] = std::move(templates);
  config["clean_up_tokenization_spaces"] = false;
  config["model_max_length"] = context;
  config["tokenizer_class"] = "PreTrainedTokenizerFast";
  result.tokenizer_config_json = config.dump(2) + "\n";

  if (const auto bos = vocabulary.special("bos")) result.ids.emplace_back("bos_token_id", *bos);
  if (Json end = end_ids(vocabulary); !end.is_null()) {
    result.ids.emplace_back("eos_token_id", std::move(end));
  } else {
    result.notes.push_back(fmt::format(
        "{} is absent: no token ends an answer, --max-tokens and --stop do", key("eos_token_id")));
  }
  if (const auto pad = vocabulary.special("padding")) result.ids.emplace_back("pad_token_id", *pad);
  return result;
}

}  // namespace octet
