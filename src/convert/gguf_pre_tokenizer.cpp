// The table of pre-tokenizers: names of llama.cpp (llama-vocab.cpp) and what the tokenizer.json of
// the models behind them says.
#include <algorithm>
#include <utility>

#include "convert/gguf_tokenizer.h"

namespace octet {
namespace {

constexpr std::string_view kNfc = R"({"type":"NFC"})";

// GPT-2's words.
constexpr std::string_view kGpt2 =
    R"({"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":true})";

// SmolLM and SmolLM2: digits one by one, then GPT-2's words.
constexpr std::string_view kSmollm =
    R"({"type":"Sequence","pretokenizers":[{"type":"Digits","individual_digits":true},)"
    R"({"type":"ByteLevel","trim_offsets":true,"use_regex":true,"add_prefix_space":false}]})";

// Llama 3.
constexpr std::string_view kLlama3 =
    R"json({"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":)json"
    R"json("(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3})json"
    R"json(| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"},)json"
    R"json("behavior":"Isolated","invert":false},{"type":"ByteLevel","add_prefix_space":false,)json"
    R"json("trim_offsets":true,"use_regex":false}]})json";

// Qwen2, 2.5 and 3: as Llama 3, with digits one by one.
constexpr std::string_view kQwen2 =
    R"json({"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":)json"
    R"json("(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N})json"
    R"json(| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"},)json"
    R"json("behavior":"Isolated","invert":false},{"type":"ByteLevel","add_prefix_space":false,)json"
    R"json("trim_offsets":false,"use_regex":false}]})json";

// Mistral's Tekken.
constexpr std::string_view kTekken =
    R"json({"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":)json"
    R"json("[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+)json"
    R"json(|[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*)json"
    R"json(|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"},)json"
    R"json("behavior":"Isolated","invert":false},{"type":"ByteLevel","add_prefix_space":false,)json"
    R"json("trim_offsets":true,"use_regex":false}]})json";

// What llama.cpp does for models whose converter did not say: four cuts, one after another.
constexpr std::string_view kDefault =
    R"json({"type":"Sequence","pretokenizers":[)json"
    R"json({"type":"Split","pattern":{"Regex":"[\\p{P}\\$\\+<=>\\^~\\|]+"},)json"
    R"json("behavior":"Isolated","invert":false},)json"
    R"json({"type":"Split","pattern":{"Regex":"'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+)json"
    R"json(| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"},"behavior":"Isolated","invert":false},)json"
    R"json({"type":"Split","pattern":{"Regex":"\\p{N}+"},"behavior":"Isolated","invert":false},)json"
    R"json({"type":"Split","pattern":{"Regex":"[0-9][0-9][0-9]"},"behavior":"Isolated",)json"
    R"json("invert":false},{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,)json"
    R"json("use_regex":false}]})json";

constexpr std::pair<std::string_view, GgufPreTokenizer> kTable[] = {
    {"deepseek-r1-qwen", {kQwen2, kNfc}},
    {"default", {kDefault}},
    {"gpt-2", {kGpt2}},
    {"llama-bpe", {kLlama3, "null", true, true}},
    {"llama-v3", {kLlama3, "null", true, true}},
    {"llama3", {kLlama3, "null", true, true}},
    {"qwen2", {kQwen2, kNfc}},
    {"smaug-bpe", {kLlama3}},
    {"smollm", {kSmollm}},
    {"tekken", {kTekken, "null", true, true}},
};

}  // namespace

const GgufPreTokenizer* gguf_pre_tokenizer(std::string_view pre) {
  const auto* it = std::find_if(std::begin(kTable), std::end(kTable),
                                [&](const auto& row) { return row.first == pre; });
  return it == std::end(kTable) ? nullptr : &it->second;
}

std::vector<std::string_view> gguf_pre_tokenizer_names() {
  std::vector<std::string_view> names;
  for (const auto& row : kTable) names.push_back(row.first);
  return names;
}

}  // namespace octet
