#pragma once
// Problems for linear kernels: a stored weight record, the share of it that a rank holds, random
// data with a different scale in every tile, and the result in double precision.
#include <cstdint>
#include <string>
#include <vector>

#include "base/split_mix.h"
#include "op/linear_reference.h"

namespace octet::conformance {

// What the random values look like.
enum class Values : uint8_t {
  Mixed,    // both signs, every finite code
  OneSign,  // all positive: the largest rounding errors a sum can have
  Wide,     // rows of x between 2^-60 and 2^60
};

// One problem. Weight and activation tiles are those of the whole record; `rows` and `cols` cut out
// a share as a tensor-parallel rank or a fused part does.
struct LinearCase {
  std::string name;
  SchemeId scheme = SchemeId::Plain;
  int64_t n = 0, k = 0;  // of the whole record
  QuantSpec weight;
  std::optional<QuantSpec> activation = std::nullopt;
  DType input = DType::F32;
  bool bias = false;
  std::optional<Range> rows = std::nullopt, cols = std::nullopt;  // nullopt: all
  int64_t x_pad = 0, y_pad = 0;                                   // elements after each row
  Values values = Values::Mixed;
  bool many_rows = false;  // also run with 512 tokens
};

// Every problem that linear kernels are proven on. Each scheme has shapes with N = K.
const std::vector<LinearCase>& linear_cases();

// The data of one case: owns the bytes that its views look at.
class LinearData {
 public:
  LinearData(const LinearCase& c, int64_t max_m, uint64_t seed);

  const QuantView& view() const { return view_; }
  const LinearProblem& problem() const { return problem_; }
  const LinearInput& input() const { return input_; }
  // Bytes behind input(): of its elements, and of its scales.
  size_t input_bytes() const { return x_.size(); }
  size_t input_scale_bytes() const { return x_scales_.size() * sizeof(float); }

  // Code of the share's weight, to plant special values in. Requires an f8 weight.
  uint8_t& weight_code(int64_t n, int64_t k);
  // Puts a value, rounded to the element type of x, in place of an element of x.
  void set_input(int64_t m, int64_t k, float value);

  // Exact results for the current bytes, of all outputs: y[m * n + n'].
  LinearReference expected(int64_t m) const;

 private:
  void fill_weight(const LinearCase& c);
  void fill_input(const LinearCase& c, int64_t max_m);

  SplitMix64 random_state_;
  QuantView view_;
  LinearProblem problem_;
  LinearInput input_;
  std::vector<std::byte> codes_, scales_, bias_, x_;
  std::vector<float> x_scales_;
};

}  // namespace octet::conformance
