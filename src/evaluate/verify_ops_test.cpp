// Right kernels pass; kernels with one fault each do not.
#include "evaluate/verify_ops.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <nlohmann/json.hpp>

#include "model/prepare.h"
#include "testing/fake_device.h"
#include "testing/tiny_checkpoint.h"

namespace octet {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Runs a right kernel with a fault before, after or around it.
template <class Op>
using Fault = std::function<void(const typename Op::Args&,
                                 const std::function<void(const typename Op::Args&)>& right)>;

template <class Op>
struct Faulty {
  static inline Kernel<Op> right{};
  static inline Fault<Op> fault;
  static void run(const typename Op::Args& args, Stream& stream) noexcept {
    fault(args, [&](const typename Op::Args& a) { right.run(a, stream); });
  }
};

template <class Op>
Kernel<Op> with_fault(const Kernel<Op>& kernel, Fault<Op> fault) {
  Faulty<Op>::right = kernel;
  Faulty<Op>::fault = std::move(fault);
  Kernel<Op> faulty = kernel;
  faulty.run = Faulty<Op>::run;
  return faulty;
}

// A tiny model of an architecture with norms of q and k, changed by a test.
struct Loaded {
  explicit Loaded(const std::function<void(TinyCheckpoint&)>& change = nullptr,
                  Carrier carrier = Carrier::Auto, bool own_memory = false) {
    info.threads = 2;
    TinyModel tiny = small_tiny_model(tiny_plain(), 400, 1000);
    tiny.architecture = "Qwen3ForCausalLM";
    tiny.model_type = "qwen3";
    tiny.qk_norm = true;
    TinyCheckpoint checkpoint = tiny_model(tiny);
    if (change) change(checkpoint);
    PlanOptions options;
    options.policy.carrier = carrier;
    prepared.emplace(
        prepare(checkpoint.write(folder.path() / "model"), false, info, std::move(options)));
    device = own_memory ? make_fake_device(info, 2) : make_cpu_device(info, 2);
    stream = device->make_stream();
    model = load(prepared->checkpoint, prepared->config, prepared->description, prepared->records,
                 prepared->plan, *device);
  }

  OpCheckScope scope() { return {*model, *device, *stream, pool}; }
  const OpPlan& ops() const { return model->plan.ops; }

  TinyFolder folder;
  DeviceInfo info = probe_cpu();
  ThreadPool pool{2};
  std::optional<Prepared> prepared;
  std::unique_ptr<Device> device;
  std::unique_ptr<Stream> stream;
  std::shared_ptr<const Model> model;
};

// Every check with the kernels of the plan; `visit` gets the name and what was found.
void each_check(Loaded& loaded,
                const std::function<void(std::string_view, const OpCheck&)>& visit) {
  const OpPlan& ops = loaded.ops();
  const OpCheckScope scope = loaded.scope();
  visit("embedding", check_embedding(scope, *ops.embedding.kernel()));
  visit("gather_rows", check_gather_rows(scope, *ops.gather_rows.kernel()));
  visit("norm", check_norm(scope, *ops.norm.kernel()));
  visit("silu_mul", check_silu_mul(scope, *ops.silu_mul.kernel()));
  visit("round", check_round(scope, *ops.round.kernel()));
  visit("absmax", check_absmax(scope, *ops.absmax.kernel()));
  visit("rope", check_rope(scope, *ops.rope.kernel()));
  visit("attention", check_attention(scope, *ops.attention.kernel()));
  visit("argmax", check_argmax(scope, *ops.argmax.kernel()));
  visit("topk", check_topk(scope, *ops.topk.kernel()));
  visit("logprob", check_logprob(scope, *ops.logprob.kernel()));
  visit("sample", check_sample(scope, *ops.sample.kernel()));
}

class VerifyOps : public ::testing::Test {
 protected:
  // What `check` finds of the plan's kernel with a fault.
  template <class Op>
  OpCheck found(OpCheck (*check)(const OpCheckScope&, const Kernel<Op>&),
                const Selection<Kernel<Op>>& selection, Fault<Op> fault) {
    return check(loaded_.scope(), with_fault(*selection.kernel(), std::move(fault)));
  }
  const OpPlan& ops() const { return loaded_.ops(); }

  Loaded loaded_;
};

TEST_F(VerifyOps, RightKernelsAreUnderTheirBounds) {
  each_check(loaded_, [](std::string_view op, const OpCheck& check) {
    EXPECT_THAT(check.failure, IsEmpty()) << op;
    EXPECT_GT(check.values, 0) << op;
    EXPECT_LE(check.worst, 1) << op;
    const bool bounded = op == "norm" || op == "silu_mul" || op == "rope" || op == "attention" ||
                         op == "topk" || op == "logprob";
    EXPECT_EQ(check.worst > 0, bounded) << op << " " << check.worst;
  });
}

TEST(VerifyOpsOfModels, EveryCarrierDeviceAndRotationIsRight) {
  const auto rotation = [](const nlohmann::json& scaling) {
    return [scaling](TinyCheckpoint& c) { c.config()["rope_scaling"] = scaling; };
  };
  const auto right = [](Loaded loaded) {
    each_check(loaded, [](std::string_view op, const OpCheck& check) {
      EXPECT_THAT(check.failure, IsEmpty()) << op;
    });
  };
  right(Loaded(nullptr, Carrier::F32));
  right(Loaded(nullptr, Carrier::BF16));
  right(Loaded(nullptr, Carrier::Auto, true));
  right(Loaded(rotation({{"rope_type", "dynamic"}, {"factor", 4.0}})));
  right(Loaded(rotation({{"rope_type", "linear"}, {"factor", 4.0}})));
}

TEST_F(VerifyOps, AGatherOfAnotherRowOrBitIsFound) {
  EXPECT_THAT(found<Gather>(check_embedding, ops().embedding,
                            [](const Gather::Args& args, const auto& right) {
                              right(args);
                              float& value = args.out[3 * args.width + 7];
                              value = std::nextafterf(value, HUGE_VALF);
                            })
                  .failure,
              AllOf(HasSubstr("[3, 7]"), HasSubstr("must be equal")));
  EXPECT_THAT(found<Gather>(check_gather_rows, ops().gather_rows,
                            [](Gather::Args args, const auto& right) {
                              args.entries -= 1;  // the last row comes out as zeros
                              right(args);
                            })
                  .failure,
              HasSubstr("row [0, "));
}

TEST_F(VerifyOps, FaultsOfANormAreFoundWithTheNormAndItsLayer) {
  const auto norm = [&](Fault<RmsNorm> fault) {
    return found<RmsNorm>(check_norm, ops().norm, std::move(fault)).failure;
  };
  EXPECT_THAT(norm([](RmsNorm::Args args, const auto& right) {
                args.epsilon = 0;
                right(args);
              }),
              HasSubstr("times its bound"));
  EXPECT_THAT(norm([&](const RmsNorm::Args& args, const auto& right) {
                right(args);
                if (args.weight == loaded_.model->layers[1].k_norm) args.out[5] *= 1.0001F;
              }),
              HasSubstr("norm of k of layer 1 [0, 5]"));
  EXPECT_THAT(norm([](const RmsNorm::Args& args, const auto& right) {
                right(args);
                if (args.delta != nullptr) args.x[args.x_stride] *= 1.0001F;
              }),
              HasSubstr("residual"));
  EXPECT_THAT(norm([](RmsNorm::Args args, const auto& right) {
                args.not_finite = nullptr;
                right(args);
              }),
              HasSubstr("flag of layer 0 [3, 0]"));
}

TEST_F(VerifyOps, FaultsOfPointwiseKernelsAreFound) {
  EXPECT_THAT(found<SiluMul>(check_silu_mul, ops().silu_mul,
                             [](const SiluMul::Args& args, const auto& right) {
                               right(args);
                               args.out[args.out_stride + args.width - 1] *= 1.00001F;
                             })
                  .failure,
              HasSubstr("out [1, 95]"));
  EXPECT_THAT(found<RoundBf16>(check_round, ops().round,
                               [](const RoundBf16::Args& args, const auto&) {
                                 for (int64_t i = 0; i < args.rows * args.stride; ++i) {
                                   const auto bits = std::bit_cast<uint32_t>(args.x[i]);
                                   args.x[i] = std::bit_cast<float>(bits & 0xFFFF0000U);
                                 }
                               })
                  .reason,
              HasSubstr("must be equal"));
  EXPECT_THAT(found<AbsMax>(check_absmax, ops().absmax,
                            [](AbsMax::Args args, const auto& right) {
                              args.width -= 1;
                              right(args);
                            })
                  .failure,
              HasSubstr("out ["));
}

TEST_F(VerifyOps, FaultsOfARotationAreFound) {
  const auto rope = [&](Fault<Rope> fault) {
    return found<Rope>(check_rope, ops().rope, std::move(fault)).failure;
  };
  EXPECT_THAT(rope([](Rope::Args args, const auto& right) {
                std::vector<int32_t> shifted(args.positions, args.positions + args.rows);
                for (int32_t& position : shifted) position = std::max(0, position - 1);
                args.positions = shifted.data();
                right(args);
              }),
              HasSubstr("key [0, "));
  EXPECT_THAT(rope([](Rope::Args args, const auto& right) {
                args.round_bf16 = true;
                right(args);
              }),
              AllOf(HasSubstr("q ["), HasSubstr("times its bound")));
  // Keys are bfloat16: a wrong one is another number altogether.
  EXPECT_THAT(rope([](Rope::Args args, const auto& right) {
                std::swap(args.k_cache, args.v_cache);
                right(args);
              }),
              HasSubstr("["));
  EXPECT_THAT(rope([](const Rope::Args& args, const auto& right) {
                right(args);
                static_cast<uint8_t*>(args.v_cache)[0] = 1;  // of a block that is nobody's
              }),
              HasSubstr("bytes written to other slots [1, 0] is 1, expected 0"));
}

TEST_F(VerifyOps, FaultsOfAttentionAreFound) {
  const auto attention = [&](Fault<Attention> fault) {
    return found<Attention>(check_attention, ops().attention, std::move(fault)).failure;
  };
  const auto with_spans = [&](const std::function<void(std::vector<SeqSpan>&)>& change) {
    return attention([change](Attention::Args args, const auto& right) {
      std::vector<SeqSpan> spans(args.spans, args.spans + args.span_count);
      change(spans);
      args.spans = spans.data();
      right(args);
    });
  };
  // The mask one token off, the cache of another sequence.
  EXPECT_THAT(with_spans([](auto& spans) { spans[1].context -= 1; }), HasSubstr("out [37, "));
  EXPECT_THAT(with_spans([](auto& spans) {
                // The table of the longest sequence has blocks for every other one.
                const SeqSpan longest = *std::max_element(
                    spans.begin(), spans.end(), [](const SeqSpan& a, const SeqSpan& b) {
                      return a.context + a.rows < b.context + b.rows;
                    });
                for (SeqSpan& span : spans) span.table = longest.table;
              }),
              HasSubstr("out ["));
  EXPECT_THAT(attention([](Attention::Args args, const auto& right) {
                args.scale *= 1.001F;
                right(args);
              }),
              HasSubstr("times its bound"));
  EXPECT_THAT(attention([](Attention::Args args, const auto& right) {
                args.window = 300;
                right(args);
              }),
              HasSubstr("out [37, "));
  EXPECT_THAT(attention([](const Attention::Args& args, const auto& right) {
                right(args);
                args.out[args.out_stride * args.rows - 1] = std::nanf("");
              }),
              HasSubstr("out [40, 63] is nan"));
}

TEST_F(VerifyOps, FaultsOfTokensAndTheirProbabilitiesAreFound) {
  EXPECT_THAT(found<ArgMax>(check_argmax, ops().argmax,
                            [](ArgMax::Args args, const auto& right) {
                              args.not_finite = nullptr;
                              right(args);
                            })
                  .failure,
              HasSubstr("flag [3, 0]"));
  // Without its last column the row whose last token is the best goes wrong.
  EXPECT_THAT(found<ArgMax>(check_argmax, ops().argmax,
                            [](ArgMax::Args args, const auto& right) {
                              right(args);
                              std::vector<float> row(args.logits + 2 * args.vocab,
                                                     args.logits + 3 * args.vocab - 1);
                              args.logits = row.data();
                              args.rows = 1;
                              args.vocab -= 1;
                              args.not_finite = nullptr;
                              args.out += 2;
                              right(args);
                            })
                  .failure,
              HasSubstr("token [2, 0]"));
  EXPECT_THAT(found<TopK>(check_topk, ops().topk,
                          [](const TopK::Args& args, const auto& right) {
                            right(args);
                            std::swap(args.ids[args.k], args.ids[args.k + 1]);
                          })
                  .failure,
              HasSubstr("token [1, "));
  EXPECT_THAT(found<TopK>(check_topk, ops().topk,
                          [](const TopK::Args& args, const auto& right) {
                            right(args);
                            args.logprobs[3] += 1e-4F;
                          })
                  .failure,
              HasSubstr("log-probability [0, 3]"));
  EXPECT_THAT(found<LogProb>(check_logprob, ops().logprob,
                             [](const LogProb::Args& args, const auto& right) {
                               right(args);
                               args.out[2] -= 1e-4F;
                             })
                  .failure,
              HasSubstr("log-probability [2, "));
}

TEST_F(VerifyOps, ASamplerThatLeavesOutAFilterIsFound) {
  const auto without = [&](const std::function<void(SampleParams&)>& change) {
    return found<Sample>(check_sample, ops().sample,
                         [change](Sample::Args args, const auto& right) {
                           std::vector<SampleParams> params(args.params, args.params + args.rows);
                           for (SampleParams& p : params) change(p);
                           args.params = params.data();
                           right(args);
                         })
        .failure;
  };
  EXPECT_THAT(without([](SampleParams& p) { p.top_k = 0; }), HasSubstr("token [1, 0]"));
  EXPECT_THAT(without([](SampleParams& p) { p.top_p = 1; }), HasSubstr("token [2, 0]"));
  EXPECT_THAT(without([](SampleParams& p) { p.min_p = 0; }), HasSubstr("token [3, 0]"));
  EXPECT_THAT(without([](SampleParams& p) { p.repetition_penalty = 1; }),
              HasSubstr("token [4, 0]"));
  EXPECT_THAT(without([](SampleParams& p) { p.temperature = 1; }), HasSubstr("token ["));
  EXPECT_THAT(without([](SampleParams& p) { p.random ^= uint64_t{1} << 63; }),
              HasSubstr("token ["));
  EXPECT_THAT(without([](SampleParams&) {}), IsEmpty());
}

TEST_F(VerifyOps, OnlyTheWorstOfManyFaultsIsReported) {
  const OpCheck check = found<SiluMul>(check_silu_mul, ops().silu_mul,
                                       [](const SiluMul::Args& args, const auto& right) {
                                         right(args);
                                         args.out[20] *= 1.001F;
                                         args.out[30] *= 1.1F;
                                         args.out[40] *= 1.01F;
                                       });
  EXPECT_THAT(check.failure, HasSubstr("out [0, 30]"));
  EXPECT_GT(check.worst, 1e5);
}

TEST(VerifyOpsOfModels, DamagedWeightsAreNotTheKernelsFault) {
  Loaded loaded([](TinyCheckpoint& c) {
    for (const char* name : {"model.norm.weight", "model.layers.1.self_attn.q_norm.weight"}) {
      std::vector<float> values;
      for (const double value : c.values(name)) values.push_back(static_cast<float>(value));
      values[3] = std::nanf("");
      c.remove(name);
      const auto count = static_cast<int64_t>(values.size());
      c.add_values(name, DType::F32, Shape{count}, values);
    }
  });
  EXPECT_THAT(check_norm(loaded.scope(), *loaded.ops().norm.kernel()).failure, IsEmpty());
}

}  // namespace
}  // namespace octet
