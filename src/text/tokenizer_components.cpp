// The small parts of tokenizer.json: normalizer, pre_tokenizer, post_processor, decoder.
#include <simdjson.h>

#include <array>
#include <utility>

#include "base/error.h"
#include "text/tokenizer_json.h"

namespace octet {
namespace {

namespace dom = simdjson::dom;

// Nesting of Sequence inside Sequence; published files have one level.
constexpr int kDeepest = 8;
// Bytes of one component; the largest published one, with its special tokens, has some 50 KB.
constexpr size_t kLargest = size_t{4} << 20;

// A JSON value and where it stands, for messages.
struct Node {
  dom::element value;
  std::string where;

  [[noreturn]] void refuse(std::string_view what) const {
    throw_error(Code::BadInput, fmt::format("{}: {}", where, what));
  }
  template <class T>
  T as(std::string_view expected) const {
    T result;
    if (value.get(result) != simdjson::SUCCESS) refuse(fmt::format("expected {}", expected));
    return result;
  }
  bool is_null() const { return value.is_null(); }
  std::optional<Node> find(std::string_view key) const {
    dom::element member;
    if (as<dom::object>("an object").at_key(key).get(member) != simdjson::SUCCESS)
      return std::nullopt;
    return Node{member, fmt::format("{}/{}", where, key)};
  }
  Node get(std::string_view key) const {
    std::optional<Node> member = find(key);
    if (!member) refuse(fmt::format("\"{}\" is missing", key));
    return *std::move(member);
  }
  std::string_view text(std::string_view key) const {
    return get(key).as<std::string_view>("a string");
  }
  bool flag(std::string_view key) const { return get(key).as<bool>("true or false"); }
  std::vector<Node> list(std::string_view key) const {
    const Node array = get(key);
    std::vector<Node> items;
    for (const dom::element item : array.as<dom::array>("an array")) {
      items.push_back({item, fmt::format("{}/{}", array.where, items.size())});
    }
    return items;
  }
};

// Parses a component and calls `use` with its root; the values live during the call.
template <class F>
auto with_root(std::string_view json, std::string_view where, F&& use) {
  if (json.size() > kLargest) {
    throw_error(Code::BadInput,
                fmt::format("{}: {} bytes are more than {}", where, json.size(), kLargest));
  }
  dom::parser parser;
  dom::element root;
  if (const auto error = parser.parse(json.data(), json.size()).get(root)) {
    throw_error(Code::BadInput, fmt::format("{}: {}", where, simdjson::error_message(error)));
  }
  return use(Node{root, std::string(where)});
}

void check_depth(const Node& node, int depth) {
  if (depth > kDeepest) node.refuse(fmt::format("more than {} levels of Sequence", kDeepest));
}

bool asks_for_nfc(const Node& node, int depth) {
  check_depth(node, depth);
  if (node.is_null()) return false;
  const std::string_view type = node.text("type");
  if (type == "NFC") return true;
  if (type != "Sequence")
    node.refuse(fmt::format("normalizer \"{}\" is not supported (known: NFC, Sequence)", type));
  bool nfc = false;
  for (const Node& item : node.list("normalizers")) nfc |= asks_for_nfc(item, depth + 1);
  return nfc;
}

SplitStage split_stage(const Node& node) {
  constexpr std::array<std::pair<std::string_view, SplitBehavior>, 5> kBehaviors = {{
      {"Removed", SplitBehavior::Removed},
      {"Isolated", SplitBehavior::Isolated},
      {"MergedWithPrevious", SplitBehavior::MergedWithPrevious},
      {"MergedWithNext", SplitBehavior::MergedWithNext},
      {"Contiguous", SplitBehavior::Contiguous},
  }};
  const std::string_view wanted = node.text("behavior");
  std::optional<SplitBehavior> behavior;
  for (const auto& [name, value] : kBehaviors) {
    if (name == wanted) behavior = value;
  }
  if (!behavior) node.refuse(fmt::format("split behavior \"{}\" is not known", wanted));
  const Node pattern = node.get("pattern");
  const bool invert = node.flag("invert");
  try {
    if (const auto regex = pattern.find("Regex")) {
      return {Pattern::regex(regex->as<std::string_view>("a string")), *behavior, invert};
    }
    return {Pattern::literal(pattern.text("String")), *behavior, invert};
  } catch (const Error& error) {
    throw error.with(pattern.where);
  }
}

struct Stages {
  std::vector<PreTokenizer::Stage> cuts;
  std::optional<ByteLevelStage> last;
};

void add_stages(const Node& node, Stages& stages, int depth) {
  check_depth(node, depth);
  const std::string_view type = node.text("type");
  if (type == "Sequence") {
    for (const Node& item : node.list("pretokenizers")) add_stages(item, stages, depth + 1);
    return;
  }
  if (stages.last)
    node.refuse(fmt::format("pre-tokenizer \"{}\" after ByteLevel is not supported", type));
  if (type == "ByteLevel") {
    const auto use_regex = node.find("use_regex");
    stages.last = byte_level_stage(node.flag("add_prefix_space"),
                                   !use_regex || use_regex->as<bool>("true or false"));
  } else if (type == "Split") {
    stages.cuts.emplace_back(split_stage(node));
  } else if (type == "Digits") {
    stages.cuts.emplace_back(DigitsStage{node.flag("individual_digits")});
  } else {
    node.refuse(fmt::format(
        "pre-tokenizer \"{}\" is not supported (known: ByteLevel, Split, Digits, Sequence)", type));
  }
}

void add_template(const Node& node, PostTemplate& result) {
  const Node specials = node.get("special_tokens");
  for (const Node& piece : node.list("single")) {
    if (const auto sequence = piece.find("Sequence")) {
      if (sequence->text("id") != "A")
        sequence->refuse("expected \"id\": \"A\", the only text there is");
      result.push_back(kTextPiece);
      continue;
    }
    const std::string name(piece.get("SpecialToken").text("id"));
    for (const Node& id : specials.get(name).list("ids")) {
      const auto value = id.as<uint64_t>("a token id");
      if (value > INT32_MAX) id.refuse(fmt::format("{} is no token id", value));
      result.push_back(static_cast<int32_t>(value));
    }
  }
}

// Finds the template, if any, among nested sequences; true if there was one.
bool add_post(const Node& node, PostTemplate& result, bool seen, int depth) {
  check_depth(node, depth);
  if (node.is_null()) return seen;
  const std::string_view type = node.text("type");
  if (type == "ByteLevel") return seen;  // it moves offsets, not tokens
  if (type == "Sequence") {
    for (const Node& item : node.list("processors")) seen = add_post(item, result, seen, depth + 1);
    return seen;
  }
  if (type != "TemplateProcessing") {
    node.refuse(fmt::format(
        "post-processor \"{}\" is not supported (known: ByteLevel, TemplateProcessing, Sequence)",
        type));
  }
  if (seen) node.refuse("a second TemplateProcessing is not supported");
  add_template(node, result);
  return true;
}

// Counts ByteLevel decoders; Fuse behind one changes nothing.
void count_byte_level(const Node& node, int& count, int depth) {
  check_depth(node, depth);
  if (node.is_null())
    node.refuse("a tokenizer without a decoder is not supported (known: ByteLevel)");
  const std::string_view type = node.text("type");
  if (type == "Sequence") {
    for (const Node& item : node.list("decoders")) count_byte_level(item, count, depth + 1);
  } else if (type == "ByteLevel") {
    if (++count > 1) node.refuse("a second ByteLevel decoder is not supported");
  } else if (type != "Fuse" || count == 0) {
    node.refuse(
        fmt::format("decoder \"{}\" is not supported here (known: ByteLevel, then Fuse)", type));
  }
}

}  // namespace

Normalizer parse_normalizer(std::string_view json) {
  return with_root(json, "/normalizer",
                   [](const Node& root) { return Normalizer(asks_for_nfc(root, 0)); });
}

PreTokenizer parse_pre_tokenizer(std::string_view json) {
  return with_root(json, "/pre_tokenizer", [](const Node& root) {
    Stages stages;
    if (!root.is_null()) add_stages(root, stages, 0);
    if (!stages.last) {
      root.refuse(
          "no ByteLevel pre-tokenizer; only byte-level tokenizers are supported (not "
          "SentencePiece)");
    }
    return PreTokenizer(std::move(stages.cuts), *std::move(stages.last));
  });
}

PostTemplate parse_post_processor(std::string_view json) {
  return with_root(json, "/post_processor", [](const Node& root) {
    PostTemplate result;
    if (!add_post(root, result, false, 0)) result = {kTextPiece};
    return result;
  });
}

void check_decoder(std::string_view json) {
  with_root(json, "/decoder", [](const Node& root) {
    int count = 0;
    count_byte_level(root, count, 0);
    if (count == 0) root.refuse("no ByteLevel decoder");
  });
}

}  // namespace octet
