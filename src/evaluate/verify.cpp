#include "evaluate/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>

#include "evaluate/verify_layer.h"
#include "evaluate/verify_ops.h"
#include "model/model.h"

namespace octet {
namespace {

using Json = nlohmann::ordered_json;

// Every linear layer of a model, by its index in Description::linears.
std::vector<const Linear*> linears_of(const Model& model, size_t count) {
  std::vector<const Linear*> list(count, nullptr);
  const auto add = [&](const Linear& linear) { list[linear.index] = &linear; };
  for (const LayerWeights& w : model.layers) {
    for (const Linear* linear : {&w.q, &w.k, &w.v, &w.o, &w.gate, &w.up, &w.down}) add(*linear);
  }
  add(model.head);
  return list;
}

// Which of the members of a group are run: the first, the middle and the last, or all.
std::vector<size_t> sampled_members(const std::vector<size_t>& members, bool all) {
  if (all || members.size() <= 3) return members;
  return {members.front(), members[members.size() / 2], members.back()};
}

uint64_t weight_bytes(const LinearRecord& record) {
  return static_cast<uint64_t>(record.view.n() * record.view.k() *
                               bytes_of(record.view.spec.dtype));
}

std::optional<double> decibels(double signal, double noise) {
  if (noise == 0 || signal == 0) return std::nullopt;
  return 10 * std::log10(signal / noise);
}

void keep_lowest(std::optional<double>& kept, std::optional<double> value) {
  if (value && (!kept || *value < *kept)) kept = value;
}

class Verifier {
 public:
  Verifier(const Prepared& prepared, const Model& model, Device& device,
           const VerifyOptions& options, const std::function<void(uint64_t)>& progress)
      : prepared_(prepared),
        plan_(prepared.plan),
        model_(model),
        device_(device),
        linears_(linears_of(model, prepared.records.size())),
        options_(options),
        progress_(progress),
        pool_(device.info().threads),
        checker_(device, pool_) {}

  Verification run() {
    advance(0);
    result_.damaged =
        damaged_tensors(prepared_.checkpoint, pool_, [&](uint64_t bytes) { progress_to(bytes); });
    done_ = prepared_.checkpoint.file_bytes();
    for (const auto& [spec, selection] : plan_.ops.quantize) {
      result_.inputs.push_back({to_string(spec), std::string(selection.kernel()->name), 0, ""});
    }
    for (const PlannedLayers& group : plan_.layers) check_group(group);
    check_ops();
    return std::move(result_);
  }

 private:
  void progress_to(uint64_t done) const {
    if (progress_) progress_(done);
  }
  void advance(uint64_t bytes) {
    done_ += bytes;
    progress_to(done_);
  }

  // True where no tensor of the layer has values that float32 may not hold the products of: what a
  // kernel makes of these is nobody's fault.
  bool is_sound(size_t i) const {
    const QuantView& view = prepared_.records[i].view;
    if (linears_[i]->static_scale && *linears_[i]->static_scale > kLargestPlausible) return false;
    return std::none_of(result_.damaged.begin(), result_.damaged.end(), [&](const auto& tensor) {
      const TensorEntry* entry = prepared_.checkpoint.find(tensor.name);
      if (!tensor.too_large || entry == nullptr) return false;
      const std::byte* begin = prepared_.checkpoint.view(*entry).data;
      const auto inside = [&](const std::byte* at) {
        return !std::less<>()(at, begin) && std::less<>()(at, begin + entry->bytes);
      };
      return inside(view.codes.data) || inside(view.scales.data) ||
             (view.has_bias && inside(view.bias.data));
    });
  }

  std::vector<size_t> sound_members(const std::vector<size_t>& members) const {
    std::vector<size_t> sound;
    std::copy_if(members.begin(), members.end(), std::back_inserter(sound),
                 [&](size_t i) { return is_sound(i); });
    return sound;
  }

  void check_group(const PlannedLayers& group) {
    VerifiedLayers out;
    const LinearKernel& kernel = *group.resolution.kernel();
    out.pattern = group.pattern;
    out.shape = group.shape;
    out.weight = to_string(group.quant.weight);
    out.input = group.quant.input ? to_string(*group.quant.input) : "unquantised";
    out.kernel = kernel.name;
    out.scheme = name(kernel.scheme);
    out.layers = static_cast<int64_t>(group.members.size());
    std::string reason;
    for (const size_t i : sampled_members(sound_members(group.members), options_.all)) {
      const Linear& linear = *linears_[i];
      const LayerCheck check =
          checker_.check(linear, prepared_.records[i].view,
                         {options_.all, options_.seed + i, [&] { progress_to(done_); }});
      const std::string& module = plan_.request.layers[i].module;
      add_input(linear, check);
      ++out.checked;
      out.values += check.values;
      keep_lowest(out.snr_db, decibels(check.signal, check.noise));
      keep_lowest(out.input_snr_db, decibels(check.input_signal, check.input_noise));
      if (out.worst_module.empty() || check.worst > out.worst) {
        out.worst = check.worst;
        out.worst_module = module;
      }
      if (!check.failure.empty() && out.failure.empty()) {
        out.failure = fmt::format("{}: {}", module, check.failure);
        reason = check.reason;
      }
      advance(weight_bytes(prepared_.records[i]));
    }
    if (!out.failure.empty()) {
      add_failure(quarantine_key(kernel, group.resolution.problem(), plan_.device), reason);
    }
    result_.layers.push_back(std::move(out));
  }

  void add_input(const Linear& linear, const LayerCheck& check) {
    if (linear.quantize == nullptr) return;
    const std::string words = to_string(linear.input);
    const auto it = std::find_if(result_.inputs.begin(), result_.inputs.end(),
                                 [&](const VerifiedInput& in) { return in.output == words; });
    if (it == result_.inputs.end()) return;
    it->values += std::end(LayerChecker::kTokens)[-1] * linear.weight.problem.k;
    if (check.quantize_failure.empty() || !it->failure.empty()) return;
    it->failure = check.quantize_failure;
    add_failure(quarantine_key(linear.quantize->name, words, plan_.device), it->failure);
  }

  void check_ops() {
    const OpPlan& ops = plan_.ops;
    const auto stream = device_.make_stream();
    const OpCheckScope scope{
        model_, device_, *stream, pool_, options_.seed, options_.all, [&] { progress_to(done_); }};
    check_op("embedding", ops.embedding, check_embedding, scope);
    check_op("norm", ops.norm, check_norm, scope);
    check_op("rope", ops.rope, check_rope, scope);
    check_op("attention", ops.attention, check_attention, scope);
    check_op("silu_mul", ops.silu_mul, check_silu_mul, scope);
    check_op("round", ops.round, check_round, scope);
    check_op("gather_rows", ops.gather_rows, check_gather_rows, scope);
    check_op("argmax", ops.argmax, check_argmax, scope);
    check_op("topk", ops.topk, check_topk, scope);
    check_op("logprob", ops.logprob, check_logprob, scope);
    check_op("sample", ops.sample, check_sample, scope);
    check_op("absmax", ops.absmax, check_absmax, scope);
  }

  template <class K>
  void check_op(std::string_view op, const Selection<K>& selection,
                OpCheck (*check)(const OpCheckScope&, const K&), const OpCheckScope& scope) {
    scope.tick();
    const K& kernel = *selection.kernel();
    OpCheck found = check(scope, kernel);
    if (!found.failure.empty()) {
      add_failure(quarantine_key(kernel.name, selection.problem, plan_.device), found.reason);
    }
    result_.operations.push_back({std::string(op), selection.problem, std::string(kernel.name),
                                  found.values, found.worst, std::move(found.failure)});
  }

  void add_failure(QuarantineEntry entry, const std::string& reason) {
    entry.reason = reason;
    entry.octet = options_.octet;
    result_.failures.push_back(std::move(entry));
  }

  const Prepared& prepared_;
  const ModelPlan& plan_;
  const Model& model_;
  Device& device_;
  const std::vector<const Linear*> linears_;
  const VerifyOptions& options_;
  const std::function<void(uint64_t)>& progress_;
  ThreadPool pool_;
  LayerChecker checker_;
  uint64_t done_ = 0;
  Verification result_;
};

Json number_or_null(std::optional<double> value) {
  return value && std::isfinite(*value) ? Json(*value) : Json(nullptr);
}

Json text_or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

}  // namespace

uint64_t verify_bytes(const Prepared& prepared, const VerifyOptions& options) {
  uint64_t bytes = prepared.checkpoint.file_bytes();
  for (const PlannedLayers& group : prepared.plan.layers) {
    for (const size_t i : sampled_members(group.members, options.all)) {
      bytes += weight_bytes(prepared.records[i]);
    }
  }
  return bytes;
}

Verification verify(const Prepared& prepared, Device& device, const VerifyOptions& options,
                    const std::function<void(uint64_t)>& progress) {
  require_runnable(prepared.plan);
  const auto model = load(prepared.checkpoint, prepared.config, prepared.description,
                          prepared.records, prepared.plan, device);
  return Verifier(prepared, *model, device, options, progress).run();
}

std::string to_json(const Verification& verification) {
  Json json{{"passed", verification.passed()}};
  json["linear"] = Json::array();
  for (const VerifiedLayers& layers : verification.layers) {
    json["linear"].push_back({{"layers", layers.pattern},
                              {"count", layers.layers},
                              {"checked", layers.checked},
                              {"n", layers.shape.n},
                              {"k", layers.shape.k},
                              {"weight", layers.weight},
                              {"input", layers.input},
                              {"scheme", layers.scheme},
                              {"kernel", layers.kernel},
                              {"values", layers.values},
                              {"snr_db", number_or_null(layers.snr_db)},
                              {"input_snr_db", number_or_null(layers.input_snr_db)},
                              {"worst", number_or_null(layers.worst)},
                              {"worst_module", layers.worst_module},
                              {"failure", text_or_null(layers.failure)}});
  }
  json["inputs"] = Json::array();
  for (const VerifiedInput& input : verification.inputs) {
    json["inputs"].push_back({{"output", input.output},
                              {"kernel", input.kernel},
                              {"values", input.values},
                              {"failure", text_or_null(input.failure)}});
  }
  json["operations"] = Json::array();
  for (const VerifiedOp& op : verification.operations) {
    json["operations"].push_back({{"op", op.op},
                                  {"problem", op.problem},
                                  {"kernel", op.kernel},
                                  {"values", op.values},
                                  {"worst", number_or_null(op.worst)},
                                  {"failure", text_or_null(op.failure)}});
  }
  json["damaged"] = Json::array();
  for (const DamagedTensor& tensor : verification.damaged) {
    json["damaged"].push_back({{"tensor", tensor.name},
                               {"dtype", name(tensor.dtype)},
                               {"damage", tensor.too_large ? "too large" : "not finite"},
                               {"values", tensor.values.count},
                               {"first", element_place(tensor.shape, tensor.values.first)}});
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace octet
