#include "io/quant_args.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/printable.h"

namespace octet {
namespace {

constexpr std::array<std::string_view, 13> kKeys{
    "num_bits", "type",     "symmetric",   "strategy", "group_size", "block_structure",
    "dynamic",  "actorder", "scale_dtype", "zp_dtype", "observer",   "observer_kwargs",
    "is_mse"};

// Blocks and groups of more elements than any layer has are the whole axis written by mistake.
constexpr int64_t kMaxExtent = int64_t{1} << 31;

enum class Strategy : uint8_t { Tensor, Channel, Group, Block, Token, TensorGroup, AttnHead };
constexpr std::array<std::string_view, 7> kStrategies{"tensor", "channel",      "group",    "block",
                                                      "token",  "tensor_group", "attn_head"};

struct Args {
  JsonField field;
  Strategy strategy = Strategy::Tensor;
  JsonField strategy_field;  // where a message about the strategy points
  int64_t group_size = 0;    // 0: none
  int64_t block_rows = 0;
  int64_t block_cols = 0;
  bool dynamic = false;
  DType scale_dtype = DType::F32;  // E8M0 only when the args ask for it

  [[noreturn]] void fail_strategy(std::string_view expected) const {
    strategy_field.fail(expected);
  }
};

// "128x128", as older writers have it, or [128, 128]; rows along N, columns along K.
void read_block_structure(const JsonField& field, Args& args) {
  constexpr std::string_view kExpected = "two whole numbers from 1, [rows, columns]";
  std::array<int64_t, 2> sizes{};
  if (field.value().is_string()) {
    const std::string text = field.word();
    const char* const end = text.data() + text.size();
    const auto first = std::from_chars(text.data(), end, sizes[0]);
    if (first.ec != std::errc{} || first.ptr == end || *first.ptr != 'x') field.fail(kExpected);
    const auto second = std::from_chars(first.ptr + 1, end, sizes[1]);
    if (second.ec != std::errc{} || second.ptr != end) field.fail(kExpected);
  } else {
    const std::vector<JsonField> elements = field.elements();
    if (elements.size() != 2) field.fail(kExpected);
    sizes = {elements[0].integer(), elements[1].integer()};
  }
  for (const int64_t size : sizes) {
    if (size < 1 || size > kMaxExtent) field.fail(kExpected);
  }
  args.block_rows = sizes[0];
  args.block_cols = sizes[1];
}

void read_strategy(Args& args) {
  const auto group = args.field.find("group_size");
  const int64_t group_size = group ? group->integer() : 0;
  if (group && (group_size < -1 || group_size > kMaxExtent)) {
    group->fail("null, -1 or a whole number from 1");
  }
  if (const auto strategy = args.field.find("strategy")) {
    const std::string word = strategy->word();
    const auto it = std::find(kStrategies.begin(), kStrategies.end(), word);
    if (it == kStrategies.end()) {
      strategy->fail("one of tensor, channel, token, group, block");
    }
    args.strategy = static_cast<Strategy>(it - kStrategies.begin());
    args.strategy_field = *strategy;
  } else if (group_size > 0) {
    args.strategy = Strategy::Group;
  } else if (group_size == -1) {
    args.strategy = Strategy::Channel;
  }
  const bool grouped = args.strategy == Strategy::Group || args.strategy == Strategy::TensorGroup;
  if (grouped && group_size <= 0) {
    throw_error(Code::BadInput,
                fmt::format("{} has strategy {} but group_size {}, expected a whole number from 1",
                            args.field.path(), kStrategies[static_cast<size_t>(args.strategy)],
                            group_size));
  }
  if (!grouped && group_size > 0) {
    group->fail(fmt::format("null, since the strategy is {}",
                            kStrategies[static_cast<size_t>(args.strategy)]));
  }
  if (grouped) args.group_size = group_size;

  const auto block = args.field.find("block_structure");
  if (block && args.strategy != Strategy::Block) {
    block->fail(fmt::format("null, since the strategy is {}",
                            kStrategies[static_cast<size_t>(args.strategy)]));
  }
  if (!block && args.strategy == Strategy::Block) {
    throw_error(Code::BadInput,
                fmt::format("{} has strategy block but no block_structure", args.field.path()));
  }
  if (block) read_block_structure(*block, args);
}

// torch dtypes by name, with or without "torch.".
void read_scale_dtype(const JsonField& field, Args& args) {
  std::string word = field.word();
  if (word.starts_with("torch.")) word.erase(0, 6);
  if (word == "uint8" || word == "float8_e8m0fnu") {
    args.scale_dtype = DType::F8E8M0;
  } else if (word != "float32" && word != "bfloat16" && word != "float16") {
    field.fail("null, float32, bfloat16, float16 or uint8 (E8M0)");
  }
}

Args parse_args(const JsonField& field, UnknownKeys& unknown) {
  Args args{field.object(), Strategy::Tensor, field};
  unknown.collect(field, kKeys);
  if (const auto bits = field.find("num_bits"); bits && bits->integer() != 8) {
    bits->fail("8: only 8-bit floats are supported");
  }
  const auto type = field.find("type");
  if (!type) {
    throw_error(Code::BadInput, fmt::format("{} has no \"type\", which means \"int\", expected "
                                            "\"float\": only 8-bit floats are supported",
                                            field.path()));
  }
  if (type->word() != "float") type->fail("\"float\": only 8-bit floats are supported");
  if (const auto symmetric = field.find("symmetric"); symmetric && !symmetric->boolean()) {
    symmetric->fail("true: zero points are not supported");
  }
  if (const auto dynamic = field.find("dynamic")) {
    if (dynamic->value().is_string() && dynamic->word() == "local") dynamic->fail("true or false");
    args.dynamic = dynamic->boolean();
  }
  read_strategy(args);
  if (const auto scale = field.find("scale_dtype")) read_scale_dtype(*scale, args);
  return args;
}

// MX (OCP Microscaling v1.0): E8M0 scales over 32 elements and nothing else.
void check_microscaling(const Args& args) {
  if (args.scale_dtype != DType::F8E8M0) return;
  if (args.strategy == Strategy::Group && args.group_size == 32) return;
  throw_error(Code::BadInput,
              fmt::format("{} has E8M0 scales over {} {}, expected strategy group with group_size "
                          "32 (MXFP8)",
                          args.field.path(), kStrategies[static_cast<size_t>(args.strategy)],
                          args.group_size));
}

void check_actorder(const JsonField& args) {
  const auto order = args.find("actorder");
  if (!order || (order->value().is_boolean() && !order->boolean())) return;
  if (order->value().is_boolean()) order->fail("null: columns in another order are not supported");
  const std::string word = order->word();
  // "weight" (also called static) orders the columns during calibration only.
  if (word != "weight" && word != "static") {
    order->fail("null, \"weight\" or \"static\": columns in another order are not supported");
  }
}

}  // namespace

void UnknownKeys::collect(const JsonField& object, std::span<const std::string_view> known) {
  for (const auto& [key, value] : object.members()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    if (!is_empty_value(value.value())) keys.emplace_back(key, object.path());
  }
}

std::vector<std::string> UnknownKeys::notes() const {
  std::vector<std::string> lines;
  std::vector<std::string_view> seen;
  for (const auto& [key, path] : keys) {
    if (std::find(seen.begin(), seen.end(), key) != seen.end()) continue;
    seen.push_back(key);
    lines.push_back(
        fmt::format("{}: key \"{}\" is not known and has no effect", path, printable_name(key)));
  }
  return lines;
}

QuantSpec parse_weight_args(const JsonField& field, bool microscaling, UnknownKeys& unknown) {
  Args args = parse_args(field, unknown);
  check_actorder(field);
  if (args.dynamic) field.at("dynamic").fail("false: weights have stored scales");
  if (microscaling) args.scale_dtype = DType::F8E8M0;
  check_microscaling(args);
  QuantSpec spec{DType::F8E4M3, ScaleTile::tensor(), args.scale_dtype, ScaleTiming::Static};
  switch (args.strategy) {
    case Strategy::Tensor:
      break;
    case Strategy::Channel:
      spec.tile = ScaleTile::row();
      break;
    case Strategy::Group:
      spec.tile = ScaleTile::group(args.group_size);
      break;
    case Strategy::Block:
      spec.tile = ScaleTile::block(args.block_rows, args.block_cols);
      break;
    case Strategy::Token:
    case Strategy::TensorGroup:
    case Strategy::AttnHead:
      args.fail_strategy("one of tensor, channel, group, block for weights");
  }
  return spec;
}

InputArgs parse_input_args(const JsonField& field, bool microscaling, UnknownKeys& unknown) {
  Args args = parse_args(field, unknown);
  if (microscaling) args.scale_dtype = DType::F8E8M0;
  check_microscaling(args);
  InputArgs input;
  input.spec.dtype = DType::F8E4M3;
  input.spec.scale_dtype = args.scale_dtype;
  input.spec.timing = args.dynamic ? ScaleTiming::Dynamic : ScaleTiming::Static;
  switch (args.strategy) {
    case Strategy::Tensor:
      input.per_token_for_tensor = args.dynamic;
      input.spec.tile = args.dynamic ? ScaleTile::row() : ScaleTile::tensor();
      return input;
    case Strategy::Token:
      if (!args.dynamic)
        args.fail_strategy("tensor, or \"dynamic\": true: tokens have no stored scale");
      input.spec.tile = ScaleTile::row();
      return input;
    case Strategy::Group:
      if (!args.dynamic)
        args.fail_strategy("tensor, or \"dynamic\": true: groups of inputs have no stored scale");
      input.spec.tile = ScaleTile::group(args.group_size);
      return input;
    case Strategy::Channel:
    case Strategy::Block:
    case Strategy::TensorGroup:
    case Strategy::AttnHead:
      break;
  }
  args.fail_strategy("one of tensor, token, group for input activations");
}

std::optional<KvQuant> parse_kv_args(const JsonField& field, UnknownKeys& unknown,
                                     std::string& note) {
  const auto bits = field.object().find("num_bits");
  const auto type = field.find("type");
  const bool float8 = (!bits || bits->integer() == 8) && type && type->word() == "float";
  if (!float8) {
    note = fmt::format("{} is not an 8-bit float and has no effect", field.path());
    return std::nullopt;
  }
  const Args args = parse_args(field, unknown);
  KvQuant kv;
  kv.timing = args.dynamic ? ScaleTiming::Dynamic : ScaleTiming::Static;
  switch (args.strategy) {
    case Strategy::Tensor:
      return kv;
    case Strategy::AttnHead:
    case Strategy::Channel:
      kv.tile = ScaleTile::row();
      return kv;
    case Strategy::Token:
    case Strategy::Group:
    case Strategy::Block:
    case Strategy::TensorGroup:
      break;
  }
  note = fmt::format("{}: strategy {} is not supported for a KV cache and has no effect",
                     field.path(), kStrategies[static_cast<size_t>(args.strategy)]);
  return std::nullopt;
}

}  // namespace octet
