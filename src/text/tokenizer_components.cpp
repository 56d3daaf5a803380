// The small parts of tokenizer.json: normalizer, pre_tokenizer, post_processor, decoder.
#include <simdjson.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"
#include "text/json_shown.h"
#include "text/tokenizer_json.h"
#include "text/utf8.h"

namespace octet {
namespace {

namespace dom = simdjson::dom;

// Nesting of Sequence inside Sequence; published files have one level.
constexpr int kDeepest = 8;
// Bytes of one component; the largest published one, with its special tokens, has some 50 KB.
constexpr size_t kLargest = size_t{4} << 20;
// Bytes of a text that is put into others; published ones have one character.
constexpr size_t kLongestContent = 64;

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
    if (value.get(result) != simdjson::SUCCESS)
      refuse(fmt::format("expected {}, got {}", expected, shown_json(value)));
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
  // A text of one character.
  std::string character(std::string_view key) const {
    const Node member = get(key);
    const auto written = member.as<std::string_view>("a string");
    if (written.empty() || code_point_at(written, 0).bytes != written.size())
      member.refuse(fmt::format("expected one character, got \"{}\"", written));
    return std::string(written);
  }
  // A text that is put into others.
  std::string content(std::string_view key) const {
    const Node member = get(key);
    const auto written = member.as<std::string_view>("a string");
    if (written.size() > kLongestContent) {
      member.refuse(
          fmt::format("expected at most {} bytes, got {}", kLongestContent, written.size()));
    }
    return std::string(written);
  }
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

// The text of a "String" pattern, which is not empty; nullopt for a "Regex".
std::optional<std::string> literal_pattern(const Node& pattern) {
  if (pattern.find("Regex")) return std::nullopt;
  const std::string_view text = pattern.text("String");
  if (text.empty()) pattern.refuse("an empty text to replace is not supported");
  return std::string(text);
}

Normalizer::Step replace_step(const Node& node) {
  const Node pattern = node.get("pattern");
  std::string content = node.content("content");
  if (auto text = literal_pattern(pattern)) return ReplaceStep{*std::move(text), content};
  if (content.find('$') != std::string::npos)
    node.refuse("the content of a Regex with \"$\" (a group's text) is not supported");
  try {
    return ReplacePatternStep{Pattern::regex(pattern.text("Regex")), content};
  } catch (const Error& error) {
    throw error.with(pattern.where);
  }
}

void add_steps(const Node& node, std::vector<Normalizer::Step>& steps, int depth) {
  constexpr std::array<std::pair<std::string_view, NormalForm>, 4> kForms = {
      {{"NFC", NormalForm::C},
       {"NFD", NormalForm::D},
       {"NFKC", NormalForm::KC},
       {"NFKD", NormalForm::KD}}};
  check_depth(node, depth);
  if (node.is_null()) return;
  const std::string_view type = node.text("type");
  for (const auto& [name, form] : kForms) {
    if (name == type) return steps.emplace_back(form), void();
  }
  if (type == "Sequence") {
    for (const Node& item : node.list("normalizers")) add_steps(item, steps, depth + 1);
  } else if (type == "Prepend") {
    steps.emplace_back(PrependStep{node.content("prepend")});
  } else if (type == "Replace") {
    steps.push_back(replace_step(node));
  } else {
    node.refuse(
        fmt::format("normalizer \"{}\" is not supported (known: NFC, NFD, NFKC, NFKD, "
                    "Prepend, Replace, Sequence)",
                    type));
  }
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

// "prepend_scheme", or "add_prefix_space" of older files.
MetaspaceStage::Prepend prepend_of(const Node& node) {
  using Prepend = MetaspaceStage::Prepend;
  constexpr std::array<std::pair<std::string_view, Prepend>, 3> kSchemes = {
      {{"always", Prepend::Always}, {"first", Prepend::First}, {"never", Prepend::Never}}};
  Prepend prepend = Prepend::Always;
  if (const auto scheme = node.find("prepend_scheme")) {
    const auto wanted = scheme->as<std::string_view>("a string");
    const auto* known = std::find_if(kSchemes.begin(), kSchemes.end(),
                                     [&](const auto& entry) { return entry.first == wanted; });
    if (known == kSchemes.end())
      scheme->refuse(fmt::format("\"{}\" is not known (known: always, first, never)", wanted));
    prepend = known->second;
  }
  const auto add = node.find("add_prefix_space");
  if (add && !add->is_null() && !add->as<bool>("true or false") && prepend != Prepend::Never)
    add->refuse("false does not go with a \"prepend_scheme\" other than \"never\"");
  return prepend;
}

MetaspaceStage metaspace_stage(const Node& node) {
  MetaspaceStage stage{node.character("replacement"), prepend_of(node), std::nullopt};
  const auto split = node.find("split");
  if (!split || split->is_null() || split->as<bool>("true or false"))
    stage.cuts = Pattern::literal(stage.replacement);
  return stage;
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
  } else if (type == "Metaspace") {
    stages.cuts.emplace_back(metaspace_stage(node));
  } else {
    node.refuse(
        fmt::format("pre-tokenizer \"{}\" is not supported (known: ByteLevel, Split, Digits, "
                    "Metaspace, Sequence)",
                    type));
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

// Reads a decoder stage by stage. Behind ByteFallback and Fuse texts are no longer those of tokens.
class DecoderReader {
 public:
  void add(const Node& node, int depth) {
    check_depth(node, depth);
    if (node.is_null())
      node.refuse("a tokenizer without a decoder is not supported (it puts spaces between tokens)");
    const std::string_view type = node.text("type");
    if (type == "Sequence") {
      for (const Node& item : node.list("decoders")) add(item, depth + 1);
    } else if (type == "Fuse") {
      fused_ = true;
    } else if (type == "ByteFallback") {
      refuse_behind(node, type, decoder_.byte_fallback || fused_);
      decoder_.byte_fallback = true;
    } else if (type == "Strip") {
      add_strip(node);
    } else if (type == "Replace") {
      refuse_behind(node, type, decoder_.byte_fallback || fused_);
      decoder_.stages.emplace_back(replace_stage(node));
    } else if (type == "Metaspace") {
      refuse_behind(node, type, decoder_.byte_fallback || fused_);
      const bool drops_first = prepend_of(node) != MetaspaceStage::Prepend::Never;
      decoder_.stages.emplace_back(MetaspaceDecoder{node.character("replacement"), drops_first});
    } else if (type == "ByteLevel") {
      node.refuse("decoder \"ByteLevel\": there is no ByteLevel pre-tokenizer to go with it");
    } else {
      node.refuse(
          fmt::format("decoder \"{}\" is not supported (known: Replace, Metaspace, Strip, "
                      "ByteFallback, Fuse, Sequence; ByteLevel with its pre-tokenizer)",
                      type));
    }
    if (decoder_.stages.size() > kMostStages || decoder_.strips.size() > kMostStages)
      node.refuse(fmt::format("more than {} stages are not supported", kMostStages));
  }
  TokenDecoder take() { return std::move(decoder_); }

 private:
  // Published decoders have one or two.
  static constexpr size_t kMostStages = 8;

  static void refuse_behind(const Node& node, std::string_view type, bool behind) {
    if (!behind) return;
    node.refuse(fmt::format("decoder \"{}\" behind ByteFallback or Fuse is not supported", type));
  }

  ReplaceDecoder replace_stage(const Node& node) {
    const Node pattern = node.get("pattern");
    auto text = literal_pattern(pattern);
    if (!text) pattern.refuse("a Regex is not supported in a decoder");
    std::string content = node.content("content");
    growth_ *= std::max<size_t>(1, content.size() / text->size());
    if (growth_ > kMostGrowth)
      node.refuse(fmt::format("could make a token more than {} times as long", kMostGrowth));
    return {*std::move(text), std::move(content)};
  }

  void add_strip(const Node& node) {
    const Node stop = node.get("stop");
    if (stop.as<uint64_t>("a count of characters") != 0)
      stop.refuse("Strip at the end is not supported, only at the start (\"stop\": 0)");
    StripDecoder stage{node.character("content"),
                       node.get("start").as<uint64_t>("a count of characters")};
    if (fused_) {
      decoder_.strips.push_back(std::move(stage));
    } else {
      refuse_behind(node, "Strip", decoder_.byte_fallback);
      decoder_.stages.emplace_back(std::move(stage));
    }
  }

  static constexpr size_t kMostGrowth = 64;
  TokenDecoder decoder_;
  bool fused_ = false;
  size_t growth_ = 1;  // by what factor the stages may grow a token
};

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
        fmt::format("decoder \"{}\" is not supported with a ByteLevel pre-tokenizer (known there: "
                    "ByteLevel, then Fuse)",
                    type));
  }
}

}  // namespace

Normalizer parse_normalizer(std::string_view json) {
  return with_root(json, "/normalizer", [](const Node& root) {
    std::vector<Normalizer::Step> steps;
    add_steps(root, steps, 0);
    try {
      return Normalizer(std::move(steps));
    } catch (const Error& error) {
      throw error.with(root.where);
    }
  });
}

PreTokenizer parse_pre_tokenizer(std::string_view json) {
  return with_root(json, "/pre_tokenizer", [](const Node& root) {
    Stages stages;
    if (!root.is_null()) add_stages(root, stages, 0);
    const bool marks_spaces =
        std::any_of(stages.cuts.begin(), stages.cuts.end(), [](const PreTokenizer::Stage& stage) {
          return std::holds_alternative<MetaspaceStage>(stage);
        });
    if (marks_spaces && stages.last)
      root.refuse("Metaspace and ByteLevel in one tokenizer are not supported");
    return PreTokenizer(std::move(stages.cuts), std::move(stages.last));
  });
}

PostTemplate parse_post_processor(std::string_view json) {
  return with_root(json, "/post_processor", [](const Node& root) {
    PostTemplate result;
    if (!add_post(root, result, false, 0)) result = {kTextPiece};
    return result;
  });
}

TokenDecoder parse_decoder(std::string_view json, Spelling spelling) {
  return with_root(json, "/decoder", [&](const Node& root) {
    DecoderReader reader;
    if (spelling == Spelling::Plain) {
      reader.add(root, 0);
      return reader.take();
    }
    int count = 0;
    count_byte_level(root, count, 0);
    if (count == 0) root.refuse("no ByteLevel decoder for a ByteLevel pre-tokenizer");
    return reader.take();
  });
}

}  // namespace octet
