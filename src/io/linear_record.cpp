#include "io/linear_record.h"

#include <cmath>
#include <cstring>

#include "base/error.h"

namespace octet {
namespace {

bool is_plain_float(DType t) {
  return t == DType::F32 || t == DType::F16 || t == DType::BF16;
}

std::string words(DType t) {
  return std::string(info(t).safetensors);
}

// Collects the tensors of one module; every message names module, tensor, expected and found.
class RecordReader {
 public:
  // n: the rows of the stored matrix, all parts together.
  RecordReader(const Checkpoint& checkpoint, std::string_view module, int64_t n, int64_t k,
               int parts)
      : checkpoint_(checkpoint), module_(module), n_(n), k_(k), parts_(parts) {}

  LinearRecord read();

 private:
  std::string name_of(std::string_view leaf) const { return fmt::format("{}.{}", module_, leaf); }
  const TensorEntry* find(std::string_view leaf) const { return checkpoint_.find(name_of(leaf)); }
  const TensorEntry& take(const TensorEntry& entry) {
    record_.tensors.push_back(entry.name);
    return entry;
  }
  [[noreturn]] void fail(const TensorEntry& entry, const std::string& expected) const;

  void read_weight();
  void resolve_quant(const TensorEntry& weight);
  void read_scales();
  const TensorEntry& scale_entry() const;
  void check_scale_dtype(const TensorEntry& scale);
  void shape_scales(const TensorEntry& scale);
  void read_input_scale();
  void read_bias();
  void check_zero_points() const;
  std::string present() const;

  const Checkpoint& checkpoint_;
  std::string_view module_;
  int64_t n_;
  int64_t k_;
  int parts_;
  QuantMatch match_;
  LinearRecord record_;
};

void RecordReader::fail(const TensorEntry& entry, const std::string& expected) const {
  throw_error(
      Code::BadInput,
      fmt::format("tensor \"{}\" is {} {}, expected {} (weight of N={} K={}, {})", entry.name,
                  words(entry.dtype), to_string(entry.shape), expected, n_, k_, match_.rule));
}

// What the files hold for this module, for messages about what they do not.
std::string RecordReader::present() const {
  std::string list;
  const std::string prefix = name_of("");
  for (const TensorEntry& entry : checkpoint_.tensors()) {
    if (!entry.name.starts_with(prefix)) continue;
    list += fmt::format("{}{} {} {}", list.empty() ? "" : ", ", entry.name.substr(prefix.size()),
                        words(entry.dtype), to_string(entry.shape));
  }
  return list.empty() ? "the files hold nothing for this module"
                      : fmt::format("the files hold {}", list);
}

LinearRecord RecordReader::read() {
  record_.module = std::string(module_);
  match_ = checkpoint_.quant().explain(module_);
  read_weight();
  if (is_f8(record_.quant.weight.dtype)) read_scales();
  read_input_scale();
  read_bias();
  check_zero_points();
  record_.view.spec = record_.quant.weight;
  return std::move(record_);
}

void RecordReader::read_weight() {
  const TensorEntry* weight = find("weight");
  if (weight == nullptr) {
    throw_error(Code::BadInput, fmt::format("tensor \"{}\" is absent, expected [{}, {}]; {}",
                                            name_of("weight"), n_, k_, present()));
  }
  const Shape expected{n_, k_};
  if (weight->shape != expected) {
    const bool transposed = weight->shape == Shape{k_, n_};
    fail(*weight, fmt::format("{}{}", to_string(expected),
                              transposed ? ", which is the stored shape transposed" : ""));
  }
  if (!is_f8(weight->dtype) && !is_plain_float(weight->dtype)) {
    fail(*weight, "F8_E4M3, F8_E5M2, BF16, F16 or F32");
  }
  resolve_quant(*weight);
  record_.view.codes = checkpoint_.view(take(*weight));
}

// The one place where config and files meet. They must agree on whether the module is quantised;
// where published readers of a config disagree (QuantMatch::Says::AsStored), the stored dtype
// decides, and a scale must come with 8-bit codes either way. Nothing is ever cast.
void RecordReader::resolve_quant(const TensorEntry& weight) {
  const TensorEntry* scale = find("weight_scale");
  if (scale == nullptr) scale = find("weight_scale_inv");
  if (is_f8(weight.dtype)) {
    if (match_.says == QuantMatch::Says::Plain) {
      throw_error(
          Code::BadInput,
          fmt::format("tensor \"{}\" is {}{}, but the config leaves \"{}\" unquantised: {}",
                      weight.name, words(weight.dtype),
                      scale == nullptr ? "" : fmt::format(" with scales \"{}\"", scale->name),
                      module_, match_.rule),
          "the config must say how 8-bit weights are scaled: correct quantization_config");
    }
    record_.quant = *match_.quant;
    record_.quant.weight.dtype = weight.dtype;
    return;
  }
  if (match_.says == QuantMatch::Says::Quantised) {
    throw_error(Code::BadInput,
                fmt::format("tensor \"{}\" is {}, but the config quantises \"{}\": {}", weight.name,
                            words(weight.dtype), module_, match_.rule),
                "the config must leave out what is stored unquantised: correct "
                "quantization_config");
  }
  if (scale != nullptr) {
    throw_error(
        Code::BadInput,
        fmt::format("tensor \"{}\" is {}, but has scales \"{}\" {}: scales belong to 8-bit "
                    "codes",
                    weight.name, words(weight.dtype), scale->name, to_string(scale->shape)));
  }
  record_.quant.weight.dtype = weight.dtype;
}

const TensorEntry& RecordReader::scale_entry() const {
  const TensorEntry* scale = find("weight_scale");
  const TensorEntry* inverse = find("weight_scale_inv");
  if (scale != nullptr && inverse != nullptr) {
    throw_error(Code::BadInput, fmt::format("both \"{}\" and \"{}\" are there, expected one",
                                            scale->name, inverse->name));
  }
  if (scale == nullptr && inverse == nullptr) {
    throw_error(
        Code::BadInput,
        fmt::format("tensor \"{}\" is absent (also as \"{}\"), expected the {} scales of 8-bit "
                    "weights ({}); {}",
                    name_of("weight_scale"), name_of("weight_scale_inv"),
                    name(record_.quant.weight.tile.granularity()), match_.rule, present()));
  }
  return scale != nullptr ? *scale : *inverse;
}

void RecordReader::check_scale_dtype(const TensorEntry& scale) {
  DType& dtype = record_.quant.weight.scale_dtype;
  const bool microscaling = dtype == DType::F8E8M0;
  const bool e8m0 = scale.dtype == DType::F8E8M0 || (microscaling && scale.dtype == DType::U8);
  if (!e8m0 && (microscaling || !is_plain_float(scale.dtype))) {
    fail(scale, microscaling ? "U8 or F8_E8M0" : "F32, BF16 or F16");
  }
  dtype = e8m0 ? DType::F8E8M0 : scale.dtype;
  record_.view.scales.dtype = dtype;
}

// Proves the scale grid from the config's geometry, never the geometry from the grid: a partial
// last block makes that ambiguous. The one exception is fp8 without blocks, whose config cannot say
// "per row".
void RecordReader::shape_scales(const TensorEntry& scale) {
  const Shape& shape = scale.shape;
  ScaleTile& tile = record_.quant.weight.tile;
  const bool per_part = parts_ > 1 && shape.elements() == parts_ && shape.rank() <= 2;
  const bool one = (shape.elements() == 1 && shape.rank() <= 2) || per_part;
  const bool per_row = shape == Shape{n_} || shape == Shape{n_, 1};
  if (match_.tensor_or_row) {
    if (!one && !per_row) fail(scale, fmt::format("1 or {} values, as [1] or [{}, 1]", n_, n_));
    tile = one ? ScaleTile::tensor() : ScaleTile::row();
  }
  ConstTensorView& view = record_.view.scales;
  switch (tile.granularity()) {
    case Granularity::Tensor:
      if (!one) {
        fail(scale, parts_ == 1 ? "1 value, as [1] or []"
                                : fmt::format("1 value, or one for each of {} parts", parts_));
      }
      if (per_part) return;  // a list until the part is cut
      break;
    case Granularity::Row:
      if (!per_row && !(one && n_ == 1)) fail(scale, fmt::format("[{}, 1] or [{}]", n_, n_));
      break;
    case Granularity::Group:
    case Granularity::Block: {
      const Shape grid{tile.tile_rows(n_), tile.tile_cols(k_)};
      if (shape != grid) fail(scale, fmt::format("{} for {}", to_string(grid), to_string(tile)));
      break;
    }
  }
  view.shape = Shape{tile.tile_rows(n_), tile.tile_cols(k_)};
  view.row_stride = view.shape[1];
}

void RecordReader::read_scales() {
  const TensorEntry& scale = take(scale_entry());
  record_.view.scales = checkpoint_.view(scale);
  check_scale_dtype(scale);
  shape_scales(scale);
  // MX (OCP Microscaling v1.0) has no partial groups.
  const QuantSpec& spec = record_.quant.weight;
  if (spec.scale_dtype == DType::F8E8M0 && spec.tile == ScaleTile::group(32) && k_ % 32 != 0) {
    throw_error(
        Code::BadInput,
        fmt::format("\"{}\": K={} is not a multiple of 32, the group of MXFP8", module_, k_));
  }
}

void RecordReader::read_input_scale() {
  const std::optional<QuantSpec>& input = record_.quant.input;
  const TensorEntry* scale = find("input_scale");
  if (scale == nullptr) {
    if (input && input->timing == ScaleTiming::Static) {
      throw_error(Code::BadInput,
                  fmt::format("tensor \"{}\" is absent, expected the static scale of the input "
                              "({}); {}",
                              name_of("input_scale"), match_.rule, present()));
    }
    return;
  }
  if (!is_f8(record_.quant.weight.dtype)) fail(*scale, "nothing beside an unquantised weight");
  if (!is_plain_float(scale->dtype)) fail(*scale, "F32, BF16 or F16");
  if (scale->shape.elements() != 1 || scale->shape.rank() > 2)
    fail(*scale, "1 value, as [1] or []");
  record_.view.input_scale = checkpoint_.view(take(*scale));
  record_.view.has_input_scale = true;
  if (record_.view.input_scale.data == nullptr) return;
  const float value = element(record_.view.input_scale, 0);
  if (!std::isfinite(value) || value <= 0) {
    throw_error(Code::BadInput, fmt::format("tensor \"{}\" holds {}, expected a positive number",
                                            scale->name, value));
  }
}

void RecordReader::read_bias() {
  const TensorEntry* bias = find("bias");
  if (bias == nullptr) return;
  if (!is_plain_float(bias->dtype)) fail(*bias, "F32, BF16 or F16");
  if (bias->shape != Shape{n_}) fail(*bias, fmt::format("[{}]", n_));
  record_.view.bias = checkpoint_.view(take(*bias));
  record_.view.has_bias = true;
}

// Some writers store the zero points of symmetric quantisation. They change nothing while they are
// zero; the account of tensors (io/tensor_use.h) skips them.
void RecordReader::check_zero_points() const {
  for (const std::string_view leaf : {"weight_zero_point", "input_zero_point"}) {
    const TensorEntry* entry = find(leaf);
    if (entry == nullptr) continue;
    const ConstTensorView view = checkpoint_.view(*entry);
    if (view.data == nullptr) continue;
    for (uint64_t i = 0; i < entry->bytes; ++i) {
      if (view.data[i] != std::byte{0}) {
        throw_error(Code::BadInput,
                    fmt::format("tensor \"{}\" is not zero: asymmetric quantisation is not "
                                "supported",
                                entry->name));
      }
    }
  }
}

// Leaves the rows of one part.
void cut_part(const StoredPart& part, int64_t n, LinearRecord& record) {
  ConstTensorView& scales = record.view.scales;
  const bool per_part = is_f8(record.view.spec.dtype) &&
                        record.view.spec.tile.granularity() == Granularity::Tensor &&
                        scales.shape.elements() > 1;
  if (per_part) {
    if (scales.data != nullptr) scales.data += part.index * bytes_of(scales.dtype);
    scales.shape = Shape{1, 1};
    scales.row_stride = 1;
  }
  record.view = slice(record.view, {part.first_row, part.first_row + n}, {0, record.view.k()});
  if (part.index > 0) record.tensors.clear();
}

}  // namespace

bool has_linear(const Checkpoint& checkpoint, std::string_view module) {
  return checkpoint.find(fmt::format("{}.weight", module)) != nullptr;
}

LinearRecord linear_record(const Checkpoint& checkpoint, std::string_view module, int64_t n,
                           int64_t k, const StoredPart& part) {
  OCTET_CHECK(n > 0 && k > 0, "{}: N={} K={}", module, n, k);
  const int64_t stored = part.stored_rows == 0 ? n : part.stored_rows;
  LinearRecord record = RecordReader(checkpoint, module, stored, k, part.count).read();
  if (part.count > 1) cut_part(part, n, record);
  return record;
}

}  // namespace octet
