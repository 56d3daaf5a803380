// Rules that need the bytes: scales, codes and plain values.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "evaluate/inspect_parts.h"
#include "evaluate/weight_scan.h"
#include "num/f8.h"

namespace octet {
namespace {

// A trained linear layer has no weight this large, and its largest one is far from zero: with the
// reciprocals of its scales it would be below kPlausible. Both must hold for scale-inverse.
constexpr double kAbsurd = 448;
constexpr double kPlausible = 32;
// range-unused: the largest code is at most this share of the range.
constexpr double kRangeShare = 1.0 / 16;
// Input scales and largest weights below are no trained model's.
constexpr float kSmallestPlausible = 0x1p-40F;

constexpr std::string_view kScaleNames[] = {"weight_scale", "weight_scale_inv"};

std::string_view leaf_of(std::string_view name) {
  const size_t dot = name.rfind('.');
  return dot == std::string_view::npos ? name : name.substr(dot + 1);
}

bool is_plain_float(DType t) {
  return t == DType::F32 || t == DType::F16 || t == DType::BF16;
}

bool is_scale(const StoredTensor& tensor) {
  return leaf_of(tensor.name).find("scale") != std::string_view::npos;
}

// Values of a float tensor, whatever its alignment.
std::vector<float> values_of(const StoredTensor& tensor) {
  std::vector<std::byte> copy(tensor.bytes.begin(), tensor.bytes.end());
  const DType dtype = value_dtype(tensor.name, tensor.dtype);
  const int64_t count = static_cast<int64_t>(copy.size()) / bytes_of(dtype);
  const ConstTensorView view{copy.data(), dtype, Shape{count}, 0};
  std::vector<float> values(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) values[static_cast<size_t>(i)] = element(view, i);
  return values;
}

float value_at(const StoredTensor& tensor, int64_t index) {
  StoredTensor one = tensor;
  const auto size = static_cast<size_t>(bytes_of(tensor.dtype));
  one.bytes = tensor.bytes.subspan(static_cast<size_t>(index) * size, size);
  return values_of(one).front();
}

// The smallest normal number of a dtype.
float smallest_normal(DType dtype) {
  return dtype == DType::F16 ? 0x1p-14F : 0x1p-126F;
}

// How many values are of a kind, and where the first is.
struct Count {
  int64_t count = 0, first = 0;
  void add(int64_t index) {
    if (count++ == 0) first = index;
  }
};

class ScaleValues {
 public:
  ScaleValues(const StoredTensor& tensor, Findings& out) : tensor_(tensor), out_(out) {}

  void check() {
    const std::vector<float> values = values_of(tensor_);
    Count bad, negative, zero, denormal;
    for (size_t i = 0; i < values.size(); ++i) {
      const float v = values[i];
      const auto index = static_cast<int64_t>(i);
      if (!std::isfinite(v)) {
        bad.add(index);
      } else if (v == 0) {
        zero.add(index);
      } else if (v < 0) {
        negative.add(index);
      } else if (v < smallest_normal(tensor_.dtype)) {
        denormal.add(index);
      }
    }
    const auto total = static_cast<int64_t>(values.size());
    report("scale-not-finite", bad, total, values, "a positive number");
    report("scale-negative", negative, total, values, "a positive number");
    report("scale-zero", zero, total, values, "a positive number");
    report("scale-denormal", denormal, total, values,
           fmt::format("at least {:.3g}", smallest_normal(tensor_.dtype)));
  }

 private:
  void report(std::string_view rule, Count count, int64_t total, const std::vector<float>& values,
              std::string expected) {
    if (count.count == 0) return;
    out_.add(
        rule, std::string(tensor_.name), std::move(expected),
        fmt::format("{} of {}, the first {:.9g} at {}", count.count, total,
                    values[static_cast<size_t>(count.first)],
                    element_place(tensor_.shape, count.first)),
        "write the checkpoint again; the quantizer divided by nothing, or the file is damaged");
  }

  const StoredTensor& tensor_;
  Findings& out_;
};

// Values above what a trained model has, and whose products float32 may not hold.
void check_too_large(std::string_view rule, const StoredTensor& tensor, ThreadPool& pool,
                     Findings& out) {
  const BadValues bad = find_too_large(tensor.bytes, value_dtype(tensor.name, tensor.dtype), pool);
  if (bad.count == 0) return;
  out.add(rule, std::string(tensor.name), "values of at most 2^40",
          fmt::format("{} of {}, the first {:.9g} at {}", bad.count, tensor.shape.elements(),
                      value_at(tensor, bad.first), element_place(tensor.shape, bad.first)),
          "get the file again; if it is as published, its writer failed");
}

// Inputs are divided by it.
void check_small_input_scale(const StoredTensor& tensor, Findings& out) {
  if (!leaf_of(tensor.name).starts_with("input") || !is_plain_float(tensor.dtype)) return;
  const std::vector<float> values = values_of(tensor);
  for (size_t i = 0; i < values.size(); ++i) {
    if (!(values[i] > 0 && values[i] < kSmallestPlausible)) continue;
    out.add("scale-too-small", std::string(tensor.name), "at least 2^-40",
            fmt::format("{:.9g} at {}", values[i],
                        element_place(tensor.shape, static_cast<int64_t>(i))),
            "calibrate again; inputs over it are cut to the largest code");
    return;
  }
}

// E8M0 has no sign and no zero; 255 is NaN. Writers store it as U8 too.
void check_e8m0(const StoredTensor& tensor, ThreadPool& pool, Findings& out) {
  const BadValues bad = find_not_finite(tensor.bytes, DType::F8E8M0, pool);
  if (bad.count == 0) return;
  out.add("scale-not-finite", std::string(tensor.name), "a power of two",
          fmt::format("{} of {} that are NaN, the first at {}", bad.count, tensor.bytes.size(),
                      element_place(tensor.shape, bad.first)));
}

std::optional<double> median(std::vector<float> values) {
  std::erase_if(values, [](float v) { return !std::isfinite(v) || v <= 0; });
  if (values.empty()) return std::nullopt;
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

class CodeRules {
 public:
  CodeRules(const Inspected& model, ThreadPool& pool, Findings& out)
      : model_(model), pool_(pool), out_(out) {}

  void check(const StoredTensor& weight) {
    const CodeCounts counts = count_codes(weight.bytes, pool_);
    const std::array<float, 256>& table = f8_table(weight.dtype);
    double largest = 0;
    int64_t bad = 0;
    for (size_t code = 0; code < 256; ++code) {
      if (counts[code] == 0) continue;
      if (std::isfinite(table[code])) {
        largest = std::max(largest, std::fabs(double{table[code]}));
      } else {
        bad += counts[code];
      }
    }
    if (bad != 0) not_finite(weight, bad);
    if (const auto module = module_of_weight(weight.name)) check_scales(weight, *module, largest);
  }

 private:
  void not_finite(const StoredTensor& weight, int64_t bad) {
    const BadValues found = find_not_finite(weight.bytes, weight.dtype, pool_);
    const auto code = std::to_integer<int>(weight.bytes[static_cast<size_t>(found.first)]);
    out_.add("weight-not-finite", std::string(weight.name), "finite codes",
             fmt::format("{} of {}, the first 0x{:02X} at {}", bad, weight.bytes.size(), code,
                         element_place(weight.shape, found.first)),
             "get the file again; if it is as published, the quantizer met values that were not "
             "finite");
  }

  const StoredTensor* scale_of(std::string_view module) const {
    for (const std::string_view leaf : kScaleNames) {
      if (const auto* found = model_.tensors.find(fmt::format("{}.{}", module, leaf))) return found;
    }
    return nullptr;
  }

  void check_scales(const StoredTensor& weight, std::string_view module, double largest) {
    const StoredTensor* scale = scale_of(module);
    if (scale == nullptr) {
      if (model_.complete) missing(weight, module);
      return;
    }
    const double range = info(weight.dtype).max_finite;
    if (largest <= range * kRangeShare) {
      out_.add("range-unused", std::string(weight.name), fmt::format("codes up to {}", range),
               fmt::format("{} at most", largest),
               "quantise again with a scale of the largest weight divided by " +
                   fmt::format("{}", range));
    }
    const bool e8m0 = value_dtype(scale->name, scale->dtype) == DType::F8E8M0;
    if ((!is_plain_float(scale->dtype) && !e8m0) || largest == 0) return;
    const std::vector<float> scales = values_of(*scale);
    if (largest > range / 2 &&
        std::all_of(scales.begin(), scales.end(), [](float v) { return v == 1; })) {
      out_.add("scale-one", std::string(scale->name), "factors of the codes",
               fmt::format("{}, so that the largest weight is {:.3g}",
                           scales.size() == 1 ? "1" : "ones", largest),
               "write the scales that the quantizer used");
    }
    const std::optional<double> typical = median(scales);
    if (typical && largest * *typical < kSmallestPlausible) {
      out_.add("scale-too-small", std::string(scale->name), "weights of at least 2^-40",
               fmt::format("a median of {:.3g}, so that the largest weight is {:.3g}", *typical,
                           largest * *typical),
               "write the scales that the quantizer used");
    }
    if (typical && *typical > kLargestPlausible) return;  // said of the scales themselves
    if (typical && largest * *typical > kAbsurd && largest / *typical < kPlausible) {
      out_.add("scale-inverse", std::string(scale->name), "factors of the codes",
               fmt::format("a median of {:.3g}, so that the largest weight is {:.3g}; with "
                           "reciprocals it would be {:.3g}",
                           *typical, largest * *typical, largest / *typical),
               "store the reciprocals");
    }
  }

  // Another tensor of the module that may be the scale under a name of its own.
  void missing(const StoredTensor& weight, std::string_view module) {
    std::string other;
    const std::string prefix = std::string(module) + ".";
    for (const StoredTensor& tensor : model_.tensors.all()) {
      const bool of_module = tensor.name.starts_with(prefix);
      if (!of_module || !is_scale(tensor) || leaf_of(tensor.name).starts_with("input")) continue;
      other = tensor.name;
    }
    out_.add("scale-missing", std::string(weight.name),
             fmt::format("\"{}weight_scale\" or \"{}weight_scale_inv\"", prefix, prefix),
             other.empty() ? "none" : fmt::format("\"{}\", a name that no reader knows", other),
             "8-bit weights mean nothing without their scales");
  }

  const Inspected& model_;
  ThreadPool& pool_;
  Findings& out_;
};

// A weight's scale beside no 8-bit weight.
void check_orphan(const StoredTensor& scale, const Inspected& model, Findings& out) {
  const std::string_view leaf = leaf_of(scale.name);
  if (std::find(std::begin(kScaleNames), std::end(kScaleNames), leaf) == std::end(kScaleNames))
    return;
  const std::string weight =
      fmt::format("{}weight", scale.name.substr(0, scale.name.size() - leaf.size()));
  const StoredTensor* found = model.tensors.find(weight);
  if (found != nullptr ? !is_plain_float(found->dtype) : !model.complete) return;
  out.add("scale-orphan", std::string(scale.name), fmt::format("8-bit codes in \"{}\"", weight),
          found == nullptr ? "no such tensor" : std::string(name(found->dtype)));
}

// A few are common in trained weights and harmless.
void check_subnormals(const StoredTensor& tensor, ThreadPool& pool, Findings& out) {
  const SubnormalCounts counts = count_subnormals(tensor.bytes, tensor.dtype, pool);
  if (2 * counts.subnormal <= counts.nonzero) return;
  out.add("weight-subnormal", std::string(tensor.name), "values from 2^-126 up",
          fmt::format("{} of {} that are not zero", counts.subnormal, counts.nonzero),
          "write the tensor again; it was scaled by a wrong factor, or is not of this dtype");
}

void check_tensor(const StoredTensor& tensor, const Inspected& model, ThreadPool& pool,
                  Findings& out) {
  if (is_scale(tensor)) {
    check_orphan(tensor, model, out);
    if (is_plain_float(tensor.dtype)) ScaleValues(tensor, out).check();
    if (value_dtype(tensor.name, tensor.dtype) == DType::F8E8M0) check_e8m0(tensor, pool, out);
    check_too_large("scale-too-large", tensor, pool, out);
    check_small_input_scale(tensor, out);
  } else if (is_f8(tensor.dtype)) {
    CodeRules(model, pool, out).check(tensor);
  } else if (const BadValues bad = find_not_finite(tensor.bytes, tensor.dtype, pool); bad.count) {
    out.add("weight-not-finite", std::string(tensor.name), "finite values",
            fmt::format("{} of {}, the first at {}", bad.count, tensor.shape.elements(),
                        element_place(tensor.shape, bad.first)),
            "get the file again; if it is as published, its training failed");
  } else {
    check_subnormals(tensor, pool, out);
    check_too_large("weight-too-large", tensor, pool, out);
  }
}

}  // namespace

void inspect_values(const Inspected& model, ThreadPool& pool,
                    const std::function<void(uint64_t, uint64_t)>& progress, Findings& out) {
  uint64_t total = 0, done = 0;
  for (const StoredTensor& tensor : model.tensors.all()) total += tensor.bytes.size();
  for (const StoredTensor& tensor : model.tensors.all()) {
    if (progress) progress(done, total);
    if (!tensor.bytes.empty()) check_tensor(tensor, model, pool, out);
    done += tensor.bytes.size();
  }
  if (progress) progress(done, total);
}

}  // namespace octet
