#include "tests/models/decided_roundings.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

#include "num/f8.h"

namespace octet {
namespace {

constexpr float kMax = 448;
// How far the quotients of two right engines may be apart, of 448: small ones, which cancel, are
// off by the noise of large ones. The largest that the golden script sees is 0.1.
constexpr float kNoise = 0.2F;

const Kernel<Quantize>* original = nullptr;
DecidedSequence sequence;
size_t input = 0;       // of `sequence`, the next to be made
int64_t first_row = 0;  // of the step, in the sequence
RoundingCounts counts;

// The distance between codes at x.
float spacing(float x) {
  return std::exp2(std::floor(std::log2(std::max(std::fabs(x), 0x1p-6F))) - 3);
}

bool beside(uint8_t code, float quotient) {
  const float value = f8e4m3_to_f32(code);
  const float x = std::clamp(quotient, -kMax, kMax);
  return std::fabs(value - x) <= 0.51F * std::max(spacing(value), spacing(x)) + kNoise;
}

// What a device holds, on the host.
template <class T>
std::vector<T> downloaded(const void* data, int64_t count, Stream& stream) {
  std::vector<T> values(static_cast<size_t>(count));
  stream.download(values.data(), data, values.size() * sizeof(T));
  return values;
}

// The scales of a step, one row after the other; of a static input the one scale.
std::vector<float> scales_of(const Quantize::Args& args, Stream& stream) {
  if (args.output.timing == ScaleTiming::Static)
    return downloaded<float>(args.static_scale, 1, stream);
  return downloaded<float>(args.scales, args.rows * args.output.tile.tile_cols(args.width), stream);
}

float scale_at(const Quantize::Args& args, const std::vector<float>& scales, int64_t row,
               int64_t col) {
  if (scales.size() == 1) return scales.front();
  const ScaleTile& tile = args.output.tile;
  return scales[static_cast<size_t>(row * tile.tile_cols(args.width) + tile.tile_col(col))];
}

void run(const Quantize::Args& args, Stream& stream) noexcept {
  original->run(args, stream);
  if (sequence.empty()) return;
  const auto before = [](const DecidedCode& a, int64_t index) { return a.index < index; };
  const auto& decided = sequence[input];
  const int64_t first = first_row * args.width;
  auto codes = downloaded<uint8_t>(args.codes, args.rows * args.width, stream);
  const auto scales = scales_of(args, stream);
  const auto x = downloaded<float>(args.x, (args.rows - 1) * args.x_stride + args.width, stream);
  for (auto it = std::lower_bound(decided.begin(), decided.end(), first, before);
       it != decided.end() && it->index < first + args.rows * args.width; ++it) {
    const int64_t row = it->index / args.width - first_row;
    const int64_t col = it->index % args.width;
    uint8_t& own = codes[static_cast<size_t>(row * args.width + col)];
    ++counts.seen;
    if (own == it->code) continue;
    const float value = x[static_cast<size_t>(row * args.x_stride + col)];
    if (!beside(it->code, value / scale_at(args, scales, row, col))) {
      ++counts.far;
      continue;
    }
    ++counts.changed;
    own = it->code;
  }
  stream.upload(args.codes, codes.data(), codes.size());
  if (++input == sequence.size()) {
    input = 0;
    first_row += args.rows;
  }
}

class Reader {
 public:
  explicit Reader(const std::filesystem::path& path) : path_(path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) throw std::runtime_error("missing " + path.string());
    bytes_.assign(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  bool done() const { return at_ == bytes_.size(); }
  uint8_t byte() {
    if (done()) throw std::runtime_error("the end is missing of " + path_.string());
    return static_cast<uint8_t>(bytes_[at_++]);
  }
  int64_t number() {  // LEB128
    int64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const uint8_t b = byte();
      value |= static_cast<int64_t>(b & 0x7FU) << shift;
      if (b < 0x80) return value;
    }
  }

 private:
  std::filesystem::path path_;
  std::string bytes_;
  size_t at_ = 0;
};

}  // namespace

std::vector<DecidedSequence> read_roundings(const std::filesystem::path& path, size_t inputs) {
  Reader reader(path);
  std::vector<DecidedSequence> sequences;
  while (!reader.done()) {
    DecidedSequence& made = sequences.emplace_back(inputs);
    for (auto& decided : made) {
      decided.resize(static_cast<size_t>(reader.number()));
      int64_t index = -1;
      for (DecidedCode& entry : decided) {
        index += reader.number();
        entry = {index, reader.byte()};
      }
    }
  }
  return sequences;
}

void force_roundings(Prepared& prepared) {
  static Kernel<Quantize> forced;
  for (auto& [spec, selection] : prepared.plan.ops.quantize) {
    if (!is_f8(spec.dtype)) continue;
    auto& kernel = selection.attempts.at(selection.chosen.value()).kernel;
    original = kernel;
    forced = *kernel;
    forced.run = run;
    kernel = &forced;
  }
}

void use_roundings(const DecidedSequence& decided) {
  sequence = decided;
  input = 0;
  first_row = 0;
  counts = {};
}

RoundingCounts rounding_counts() {
  return counts;
}

}  // namespace octet
