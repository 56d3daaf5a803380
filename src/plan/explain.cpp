#include "plan/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/plural.h"
#include "base/printable.h"
#include "plan/refusal_lines.h"

namespace octet {
namespace {

using Json = nlohmann::ordered_json;

std::string input_text(const LayerQuant& quant) {
  return quant.input ? to_string(*quant.input) : "unquantised";
}

std::string features_text(const DeviceInfo& device) {
  return device.features.empty() ? "" : "; " + to_string(device.features);
}

// How the chosen pair takes its input: "f8e4m3 codes", "bf16", "f32".
std::string carrier_text(const LinearProblem& problem) {
  return problem.activation ? std::string(name(problem.activation->dtype)) + " codes"
                            : std::string(name(problem.input));
}

// Which flag binds the layers.
std::string bound_text(const PlannedLayers& group) {
  if (!group.forced) return "";
  return group.backend.empty() ? "  (--kernel)"
                               : fmt::format("  (--linear-backend {})", group.backend);
}

std::string layer_line(const PlannedLayers& group) {
  return fmt::format("{}  x{}  N={} K={}{}{}\n", group.pattern, group.members.size(), group.shape.n,
                     group.shape.k, group.bias ? "  bias" : "", bound_text(group));
}

// The attempts that a report lists: kernels of other devices say nothing new, unless there are no
// others; then they are the reason why nothing runs.
template <class A>
std::vector<const A*> listed(const std::vector<A>& attempts) {
  std::vector<const A*> here, elsewhere;
  for (const A& attempt : attempts)
    (is_of_another_device(attempt.refusals) ? elsewhere : here).push_back(&attempt);
  return here.empty() ? elsewhere : here;
}

// What was decided for a layer, without its name and shape: layers with equal words share it.
std::string decision_lines(const PlannedLayers& group) {
  std::string out = fmt::format("    weights {}, input {}\n", to_string(group.quant.weight),
                                input_text(group.quant));
  const Resolution& r = group.resolution;
  std::vector<RefusedKernel> refused;
  for (const LinearAttempt* a : listed(r.attempts)) {
    if (!a->refusals.empty()) {
      refused.push_back({a->kernel->name, a->refusals});
      continue;
    }
    const bool chosen = r.chosen && &r.attempts[*r.chosen] == a;
    out +=
        fmt::format("  {} {:5} {}", chosen ? '*' : '+', name(a->kernel->scheme), a->kernel->name);
    if (chosen) out += fmt::format("  takes {}", carrier_text(a->problem));
    if (a->refined) out += fmt::format("  (as {})", to_string(a->problem.weight.tile));
    out += '\n';
  }
  return out + refusal_lines(refused, "  ");
}

// Every distinct layer, those with the same decision together, in order of their first.
void explain_layers(std::string& out, const ModelPlan& plan) {
  std::vector<std::pair<std::string, std::string>> blocks;  // layers, decision
  for (const PlannedLayers& group : plan.layers) {
    const std::string decision = decision_lines(group);
    auto it = std::find_if(blocks.begin(), blocks.end(),
                           [&](const auto& block) { return block.second == decision; });
    if (it == blocks.end()) it = blocks.insert(it, {"", decision});
    it->first += layer_line(group);
  }
  for (const auto& [layers, decision] : blocks) out += layers + decision;
}

template <class Op>
void explain_op(std::string& out, const Selection<Kernel<Op>>& selection,
                std::string_view label = Op::kName) {
  const auto* kernel = selection.kernel();
  out += fmt::format("  {:24} {}\n", label, kernel != nullptr ? kernel->name : "none");
  std::vector<RefusedKernel> refused;
  for (const auto* attempt : listed(selection.attempts)) {
    if (!attempt->refusals.empty()) refused.push_back({attempt->kernel->name, attempt->refusals});
  }
  out += refusal_lines(refused, "    ");
}

void explain_ops(std::string& out, const OpPlan& ops) {
  explain_op(out, ops.embedding, "embedding");
  explain_op(out, ops.norm);
  for (const auto& [spec, selection] : ops.quantize)
    explain_op(out, selection, "input " + to_string(spec));
  explain_op(out, ops.rope);
  explain_op(out, ops.attention);
  explain_op(out, ops.silu_mul);
  explain_op(out, ops.round);
  explain_op(out, ops.gather_rows, "gather rows");
  explain_op(out, ops.argmax);
  explain_op(out, ops.topk);
  explain_op(out, ops.logprob);
  explain_op(out, ops.sample);
  explain_op(out, ops.absmax);
}

void explain_budget(std::string& out, const ModelPlan& plan) {
  const Budget& b = plan.budget;
  out += fmt::format("  {:24} {} ({} of it copied)\n", "weights", human_bytes(b.weights),
                     human_bytes(b.copied));
  out += fmt::format("  {:24} {} a token ({}), {} for {}\n", "KV", human_bytes(b.kv_per_token),
                     name(plan.kv.dtype), human_bytes(b.kv()), counted(b.max_model_len, "token"));
  out += fmt::format("  {:24} {} for steps of {}\n", "scratch", human_bytes(b.scratch),
                     counted(plan.options.max_batch_tokens, "token"));
  out += fmt::format("  {:24} {}; {} of context {}\n", "device memory", human_bytes(b.device),
                     counted(b.fits_tokens, "token"), b.fits_tokens == 1 ? "fits" : "fit");
}

Json refusals_json(const std::vector<Refusal>& refusals) {
  Json list = Json::array();
  for (const Refusal& refusal : refusals) list.push_back(refusal.detail);
  return list;
}

Json group_json(const ModelPlan& plan, const PlannedLayers& group) {
  Json json;
  json["layers"] = group.pattern;
  json["count"] = group.members.size();
  json["modules"] = Json::array();
  for (const size_t i : group.members) json["modules"].push_back(plan.request.layers[i].module);
  json["n"] = group.shape.n;
  json["k"] = group.shape.k;
  json["bias"] = group.bias;
  json["weight"] = to_string(group.quant.weight);
  json["input"] = group.quant.input ? Json(to_string(*group.quant.input)) : Json(nullptr);
  json["forced"] = group.forced;
  if (!group.backend.empty()) json["backend"] = group.backend;
  const LinearKernel* kernel = group.resolution.kernel();
  json["scheme"] = kernel != nullptr ? Json(name(kernel->scheme)) : Json(nullptr);
  json["kernel"] = kernel != nullptr ? Json(kernel->name) : Json(nullptr);
  json["attempts"] = Json::array();
  for (const LinearAttempt* a : listed(group.resolution.attempts)) {
    json["attempts"].push_back({{"scheme", name(a->kernel->scheme)},
                                {"kernel", a->kernel->name},
                                {"refined", a->refined},
                                {"refusals", refusals_json(a->refusals)}});
  }
  return json;
}

template <class Op>
Json op_json(const Selection<Kernel<Op>>& selection, std::string_view label = Op::kName) {
  Json json{{"op", label}};
  json["kernel"] = selection.chosen ? Json(selection.kernel()->name) : Json(nullptr);
  json["attempts"] = Json::array();
  for (const auto* attempt : listed(selection.attempts)) {
    json["attempts"].push_back(
        {{"kernel", attempt->kernel->name}, {"refusals", refusals_json(attempt->refusals)}});
  }
  return json;
}

Json ops_json(const OpPlan& ops) {
  Json list = Json::array();
  list.push_back(op_json(ops.embedding, "embedding"));
  list.push_back(op_json(ops.norm));
  for (const auto& [spec, selection] : ops.quantize)
    list.push_back(op_json(selection, "input " + to_string(spec)));
  list.push_back(op_json(ops.rope));
  list.push_back(op_json(ops.attention));
  list.push_back(op_json(ops.silu_mul));
  list.push_back(op_json(ops.round));
  list.push_back(op_json(ops.gather_rows, "gather_rows"));
  list.push_back(op_json(ops.argmax));
  list.push_back(op_json(ops.topk));
  list.push_back(op_json(ops.logprob));
  list.push_back(op_json(ops.sample));
  list.push_back(op_json(ops.absmax));
  return list;
}

}  // namespace

std::string human_bytes(uint64_t bytes) {
  constexpr std::string_view kUnits[] = {"B", "kB", "MB", "GB", "TB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 999.5 && unit + 1 < std::size(kUnits)) {
    value /= 1000;
    ++unit;
  }
  if (unit == 0) return fmt::format("{} B", bytes);
  return fmt::format("{:.{}f} {}", value, value < 9.995 ? 2 : (value < 99.95 ? 1 : 0),
                     kUnits[unit]);
}

std::string explain(const ModelPlan& plan) {
  std::string out = fmt::format("{}: {}, {}, {} linear", printable_name(plan.request.model),
                                plan.request.architecture, counted(plan.dims.layers, "layer"),
                                plan.request.layers.size());
  if (plan.options.ranks > 1)
    out += fmt::format(", rank {} of {}", plan.options.rank, plan.options.ranks);
  out += fmt::format("\ndevice {} \"{}\" ({}, {}{})\n", name(plan.device.kind),
                     printable_name(plan.device.name), counted(plan.device.threads, "thread"),
                     human_bytes(plan.device.memory_bytes), features_text(plan.device));
  out += "\nlinear layers   * chosen  + could also run  - refused\n";
  explain_layers(out, plan);
  out += "\noperations\n";
  explain_ops(out, plan.ops);
  out += "\nbytes\n";
  explain_budget(out, plan);
  if (!plan.notes.empty()) out += "\nnotes\n";
  for (const std::string& note : plan.notes) out += fmt::format("  {}\n", printable(note));
  return out;
}

std::string to_json(const ModelPlan& plan) {
  Json json;
  json["model"] = plan.request.model;
  json["architecture"] = plan.request.architecture;
  json["device"] = {{"kind", name(plan.device.kind)},
                    {"name", plan.device.name},
                    {"threads", plan.device.threads},
                    {"memory_bytes", plan.device.memory_bytes}};
  Json features = Json::array();
  plan.device.features.each([&](Feature f) { features.push_back(name(f)); });
  json["device"]["features"] = features;
  json["dtype"] = name(plan.options.policy.carrier);
  json["ranks"] = plan.options.ranks;
  json["rank"] = plan.options.rank;
  json["ranks_requested"] = plan.ranks_requested;
  json["ranks_possible"] = plan.ranks_possible;
  json["runnable"] = plan.failures.empty();
  json["linear"] = Json::array();
  for (const PlannedLayers& group : plan.layers) json["linear"].push_back(group_json(plan, group));
  json["operations"] = ops_json(plan.ops);
  const Budget& b = plan.budget;
  json["bytes"] = {{"weights", b.weights}, {"copied", b.copied},   {"kv_per_token", b.kv_per_token},
                   {"kv", b.kv()},         {"scratch", b.scratch}, {"device", b.device}};
  json["kv_dtype"] = name(plan.kv.dtype);
  json["max_model_len"] = b.max_model_len;
  json["fits_tokens"] = b.fits_tokens;
  json["notes"] = plan.notes;
  json["failures"] = plan.failures;
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace octet
