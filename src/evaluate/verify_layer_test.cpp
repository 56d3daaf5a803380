// A right kernel passes; kernels with one fault each do not, however small the fault.
#include "evaluate/verify_layer.h"

#include <gmock/gmock.h>

#include <functional>

#include "base/error.h"
#include "num/f8.h"
#include "testing/fake_device.h"
#include "testing/tiny_checkpoint.h"

namespace octet {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr int64_t kN = 37, kK = 70;

const LinearKernel& linear_kernel(std::string_view name) {
  for (const LinearKernel* kernel : kernels<LinearKernel>()) {
    if (kernel->name == name) return *kernel;
  }
  throw_error(Code::Bug, fmt::format("no kernel {}", name));
}
const Kernel<Quantize>& quantize_kernel() {
  return *kernels<Kernel<Quantize>>().back();  // the reference is preferred least
}

// What a faulty kernel does to the outputs of a right one.
std::function<void(const LinearArgs&)>& fault() {
  static std::function<void(const LinearArgs&)> value;
  return value;
}
void faulty_run(const LinearArgs& args, Stream& stream) noexcept {
  linear_kernel("cpu.linear.w8a8.f8.ref").run(args, stream);
  fault()(args);
}
void faulty_quantize(const Quantize::Args& args, Stream& stream) noexcept {
  quantize_kernel().run(args, stream);
  static_cast<uint8_t*>(args.codes)[5] ^= 1;
}

// One W8A8 layer with a scale per row and inputs per token.
class LayerCheckTest : public ::testing::Test {
 protected:
  LayerCheckTest() {
    info_.threads = 2;
    cpu_ = make_cpu_device(info_, 2);
    TinyRandom random(1);
    for (int64_t i = 0; i < kN * kK; ++i) codes_.push_back(f32_to_f8e4m3(60 * random.normal()));
    for (int64_t n = 0; n < kN; ++n) scales_.push_back(0.001F * (1 + random.uniform()));
    view_.spec = {DType::F8E4M3, ScaleTile::row(), DType::F32, ScaleTiming::Static};
    view_.codes = {reinterpret_cast<const std::byte*>(codes_.data()), DType::F8E4M3, Shape{kN, kK},
                   kK};
    view_.scales = {reinterpret_cast<const std::byte*>(scales_.data()), DType::F32, Shape{kN, 1},
                    1};
  }

  LayerCheck check(const LinearKernel& kernel, const Kernel<Quantize>& quantize,
                   Device& device) const {
    const QuantSpec input{DType::F8E4M3, ScaleTile::row(), DType::F32, ScaleTiming::Dynamic};
    const auto stream = device.make_stream();
    Linear layer;
    layer.kernel = &kernel;
    layer.quantize = &quantize;
    layer.input = input;
    layer.weight = kernel.pack(
        view_,
        {.scheme = SchemeId::W8A8, .n = kN, .k = kK, .weight = view_.spec, .activation = input},
        device, *stream);
    stream->wait();
    ThreadPool pool(2);
    return LayerChecker(device, pool).check(layer, view_, {});
  }
  LayerCheck check(const LinearKernel& kernel) const {
    return check(kernel, quantize_kernel(), *cpu_);
  }
  LayerCheck with_fault(std::function<void(const LinearArgs&)> wrong, bool invariant = true) const {
    LinearKernel kernel = linear_kernel("cpu.linear.w8a8.f8.ref");
    kernel.run = faulty_run;
    kernel.error.batch_invariant = invariant;
    fault() = std::move(wrong);
    return check(kernel);
  }

  DeviceInfo info_ = probe_cpu();
  std::unique_ptr<Device> cpu_;
  std::vector<uint8_t> codes_;
  std::vector<float> scales_;
  QuantView view_;
};

TEST_F(LayerCheckTest, ARightKernelIsUnderItsBoundOnEveryOutput) {
  const LayerCheck right = check(linear_kernel("cpu.linear.w8a8.f8.ref"));
  EXPECT_THAT(right.failure, IsEmpty());
  EXPECT_THAT(right.quantize_failure, IsEmpty());
  EXPECT_EQ(right.values, 70 * kN);
  EXPECT_GT(right.worst, 0);
  EXPECT_LT(right.worst, 1);
  EXPECT_GT(right.signal, 1e10 * right.noise);
  EXPECT_GT(right.input_signal, 100 * right.input_noise);
  EXPECT_GT(right.input_noise, right.noise);
}

TEST_F(LayerCheckTest, ADeviceWithItsOwnMemoryGivesTheSame) {
  const LinearKernel& kernel = linear_kernel("cpu.linear.w8a8.f8.ref");
  const auto fake = make_fake_device(info_, 2);
  const LayerCheck there = check(kernel, quantize_kernel(), *fake);
  const LayerCheck here = check(kernel);
  EXPECT_THAT(there.failure, IsEmpty());
  EXPECT_EQ(there.noise, here.noise);
  EXPECT_EQ(there.worst, here.worst);
}

TEST_F(LayerCheckTest, ALostColumnIsNamed) {
  const LayerCheck wrong = with_fault([](const LinearArgs& args) {
    for (int64_t m = 0; m < args.m; ++m) args.y[m * args.y_stride + kN - 1] = 0;
  });
  EXPECT_THAT(wrong.failure, HasSubstr(", 36] of"));
  EXPECT_THAT(wrong.reason, HasSubstr("times its bound"));
  EXPECT_GT(wrong.worst, 1);
}

TEST_F(LayerCheckTest, AnOutputThatWasNotWrittenIsNamed) {
  const LayerCheck wrong = with_fault(
      [](const LinearArgs& args) { args.y[(args.m - 1) * args.y_stride + 3] = std::nanf(""); });
  EXPECT_THAT(wrong.reason, HasSubstr("not finite"));
}

TEST_F(LayerCheckTest, AFaultAmongManyTokensAloneIsFound) {
  const LayerCheck wrong = with_fault([](const LinearArgs& args) {
    if (args.m > 5) args.y[7 * args.y_stride + 2] *= 1.001F;
  });
  EXPECT_THAT(wrong.failure, HasSubstr("y[7, 2] of 64 tokens"));
}

TEST_F(LayerCheckTest, ARowThatDependsOnItsBatchIsWrongWhereThatIsPromised) {
  const auto last_bit = [](const LinearArgs& args) {
    if (args.m > 5) args.y[1] = std::nextafterf(args.y[1], HUGE_VALF);
  };
  EXPECT_THAT(with_fault(last_bit, true).failure, HasSubstr("among fewer tokens"));
  EXPECT_THAT(with_fault(last_bit, false).failure, Not(HasSubstr("among fewer tokens")));
}

TEST_F(LayerCheckTest, ASwappedScaleIsFound) {
  // The reference reads the record, the kernel what it packed: here the scales of two other rows.
  const LayerCheck wrong = with_fault([this](const LinearArgs& args) {
    for (int64_t m = 0; m < args.m; ++m) {
      float* y = args.y + m * args.y_stride;
      y[0] *= scales_[1] / scales_[0];
      y[1] *= scales_[0] / scales_[1];
    }
  });
  EXPECT_THAT(wrong.reason, HasSubstr("times its bound"));
}

TEST_F(LayerCheckTest, AWrongCodeOfTheInputIsTheQuantizersFault) {
  Kernel<Quantize> kernel = quantize_kernel();
  kernel.run = faulty_quantize;
  const LayerCheck wrong = check(linear_kernel("cpu.linear.w8a8.f8.ref"), kernel, *cpu_);
  EXPECT_THAT(wrong.quantize_failure, HasSubstr("code [0, 5]"));
  EXPECT_THAT(wrong.failure, IsEmpty());  // the linear kernel was right on what it got
}

TEST_F(LayerCheckTest, LostSubnormalsAreNoFaultAndAnyOtherValueStillIs) {
  for (const float tiny : {1e-38F, 1e-42F}) {  // of normal numbers only the first
    scales_[5] = 0.001F * tiny;                // outputs near 1e-40
    const auto flushed = [](const LinearArgs& args) {
      for (int64_t m = 0; m < args.m; ++m) args.y[m * args.y_stride + 5] = 0;
    };
    const LayerCheck right = with_fault(flushed);
    EXPECT_THAT(right.failure, IsEmpty());
    EXPECT_LT(right.worst, 1);
    const LayerCheck wrong = with_fault([&](const LinearArgs& args) {
      flushed(args);
      args.y[6] *= 1.0001F;
    });
    EXPECT_THAT(wrong.failure, HasSubstr("y[0, 6]"));
    const LayerCheck grown = with_fault([](const LinearArgs& args) { args.y[5] = 1e-20F; });
    EXPECT_THAT(grown.failure, HasSubstr("y[0, 5]"));
  }
}

TEST_F(LayerCheckTest, NaNWeightsAreNotTheKernelsFault) {
  codes_[3 * kK + 1] = 0x7F;
  EXPECT_THAT(check(linear_kernel("cpu.linear.w8a8.f8.ref")).failure, IsEmpty());
  const LayerCheck hidden = with_fault([](const LinearArgs& args) { args.y[3] = 1; });
  EXPECT_THAT(hidden.failure, HasSubstr("not finite is expected"));
}

}  // namespace
}  // namespace octet
