// Tensors against the model that config.json describes, and against the quantisation config.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/plural.h"
#include "evaluate/inspect_parts.h"
#include "io/hub_cache.h"
#include "io/linear_record.h"
#include "io/tensor_use.h"
#include "model/describe.h"

namespace octet {
namespace {

class Structure {
 public:
  Structure(const Checkpoint& checkpoint, Findings& out) : checkpoint_(checkpoint), out_(out) {}

  // Against the model of config.json.
  void check(const ModelConfig& config) {
    const Description description = describe(config);
    for (const TensorRef& ref : description.tensors) check_tensor(ref);
    for (const LinearRef& ref : description.linears) {
      if (ref.role == Role::Head && config.tied_embeddings) {
        if (checkpoint_.find(ref.stored + ".weight") != nullptr)
          used_.insert(ref.stored + ".weight");
        continue;
      }
      check_linear(ref.stored, ref.shape.n, ref.shape.k, ref.part);
    }
    if (!description.experts.empty()) {
      out_.add("unsupported", description.experts.front(), "dense layers",
               counted(description.experts.size(), "layer of experts"),
               "octet has no kernels for experts; their tensors were not looked for");
      return;
    }
    check_unused(config);
    if (broken_) return;
    try {  // what only the whole shows, such as a bias that the config does not speak of
      std::vector<std::string> notes;
      linear_records(checkpoint_, config, description, notes);
      for (std::string& note : notes) out_.add("remark", "files", "", std::move(note));
    } catch (const Error& error) {
      out_.add("layer", "files", "", error.message(), error.hint());
    }
  }

  // Without a model that is known: every stored matrix by itself.
  void check_matrices() {
    for (const TensorEntry& entry : checkpoint_.tensors()) {
      const auto module = module_of_weight(entry.name);
      if (module && is_f8(entry.dtype) && entry.shape.rank() == 2)
        check_linear(std::string(*module), entry.shape[0], entry.shape[1], {});
    }
  }

 private:
  void add(std::string_view rule, std::string subject, std::string expected, std::string got,
           std::string hint = {}) {
    broken_ = true;
    out_.add(rule, std::move(subject), std::move(expected), std::move(got), std::move(hint));
  }

  void check_tensor(const TensorRef& ref) {
    used_.insert(ref.name);
    const TensorEntry* entry = checkpoint_.find(ref.name);
    if (entry == nullptr) {
      add("tensor-absent", ref.name, to_string(ref.shape), "no such tensor");
      return;
    }
    const bool is_float =
        entry->dtype == DType::F32 || entry->dtype == DType::F16 || entry->dtype == DType::BF16;
    if (entry->shape == ref.shape && is_float) return;
    add("tensor-shape", ref.name, fmt::format("{} of f32, f16 or bf16", to_string(ref.shape)),
        fmt::format("{} of {}", to_string(entry->shape), name(entry->dtype)));
  }

  void check_linear(const std::string& stored, int64_t n, int64_t k, const StoredPart& part) {
    const std::string weight = stored + ".weight";
    const TensorEntry* entry = checkpoint_.find(weight);
    const int64_t rows = part.stored_rows == 0 ? n : part.stored_rows;
    if (part.index != 0) return;  // the first part stands for all
    const std::string expected = fmt::format("[{}, {}]", rows, k);
    if (entry == nullptr) {
      add("tensor-absent", weight, expected, "no such tensor");
    } else if (entry->shape != Shape{rows, k}) {
      add("tensor-shape", weight, expected, to_string(entry->shape));
    } else {
      try {
        const LinearRecord record = linear_record(checkpoint_, stored, n, k, part);
        used_.insert(record.tensors.begin(), record.tensors.end());
        return;
      } catch (const Error& error) {
        judge_refusal(*entry, stored, error);
      }
    }
    // Nothing of a broken layer is said to be unused as well.
    for (const TensorEntry& tensor : checkpoint_.tensors()) {
      if (tensor.name.starts_with(stored + ".")) used_.emplace(tensor.name);
    }
  }

  // Which rule a refusal of linear_record() belongs to.
  void judge_refusal(const TensorEntry& weight, const std::string& stored, const Error& error) {
    broken_ = true;
    const TensorEntry* scale = checkpoint_.find(stored + ".weight_scale");
    if (scale == nullptr) scale = checkpoint_.find(stored + ".weight_scale_inv");
    const QuantMatch match = checkpoint_.quant().explain(stored);
    const bool f8 = is_f8(weight.dtype);
    const bool disagree =
        f8 ? match.says == QuantMatch::Says::Plain : match.says == QuantMatch::Says::Quantised;
    if (disagree) {
      out_.add("quant-disagrees", std::string(weight.name),
               f8 ? fmt::format("an unquantised weight: {}", match.rule)
                  : fmt::format("8-bit codes: {}", match.rule),
               fmt::format("{}{}", name(weight.dtype), scale == nullptr ? "" : " with scales"),
               error.hint());
      return;
    }
    const bool by_values = error.message().find("expected a positive number") != std::string::npos;
    // Named by the rules that read values.
    if ((f8 && scale == nullptr) || (!f8 && scale != nullptr) || by_values) return;
    const std::string quoted = scale == nullptr ? "" : fmt::format("\"{}\"", scale->name);
    const bool of_scale = scale != nullptr && error.message().find(quoted) != std::string::npos;
    if (of_scale) {
      out_.add("scale-shape", std::string(scale->name), expected_scales(weight, match),
               to_string(*scale), error.message());
    } else {
      out_.add("layer", stored, "", error.message(), error.hint());
    }
  }

  static std::string to_string(const TensorEntry& entry) {
    return fmt::format("{} of {}", octet::to_string(entry.shape), name(entry.dtype));
  }
  static std::string to_string(const Shape& shape) { return octet::to_string(shape); }

  // The scales that the strategy of `match` asks for.
  static std::string expected_scales(const TensorEntry& weight, const QuantMatch& match) {
    const bool microscaling = match.quant && match.quant->weight.scale_dtype == DType::F8E8M0;
    return fmt::format("{} of {}", scale_grid(weight, match),
                       microscaling ? "f8e8m0 or u8" : "f32, bf16 or f16");
  }

  static std::string scale_grid(const TensorEntry& weight, const QuantMatch& match) {
    const int64_t n = weight.shape[0];
    if (match.tensor_or_row || !match.quant)
      return fmt::format("one value as [1] or [], or [{}, 1] or [{}] for one per row,", n, n);
    const ScaleTile& tile = match.quant->weight.tile;
    if (tile.granularity() == Granularity::Tensor) return "one value, as [1] or [],";
    if (tile.granularity() == Granularity::Row) return fmt::format("[{}, 1] or [{}]", n, n);
    return fmt::format("[{}, {}] for scales per {}", tile.tile_rows(n),
                       tile.tile_cols(weight.shape[1]), octet::to_string(tile));
  }

  void check_unused(const ModelConfig& config) {
    TensorUse use(checkpoint_);
    for (const std::string& tensor : used_) {
      if (checkpoint_.find(tensor) != nullptr) use.use(tensor);
    }
    for (const TensorEntry& entry : checkpoint_.tensors()) {
      const bool of_text = entry.name.starts_with(config.stored.prefix) ||
                           entry.name.starts_with(config.stored.head + ".");
      if (!config.wrapper.empty() && !of_text) use.skip(entry.name, "part of a wrapper");
    }
    try {
      use.finish();
    } catch (const Error& error) {
      broken_ = true;
      out_.add("tensor-unused", "files", "", error.message(), error.hint(),
               {use.unused().begin(), use.unused().end()});
    }
  }

  const Checkpoint& checkpoint_;
  Findings& out_;
  std::set<std::string, std::less<>> used_;
  bool broken_ = false;
};

}  // namespace

void inspect_structure(const Inspected& model, Findings& out) {
  if (!model.checkpoint) {
    out.add("left-out", model_name(model.dir), "",
            "the tensors are not compared with config.json: the files are no whole checkpoint");
    return;
  }
  const Checkpoint& checkpoint = *model.checkpoint;
  for (const std::string& note : checkpoint.notes()) out.add("remark", "files", "", note);
  for (const std::string& note : checkpoint.quant().notes())
    out.add("remark", "config.json", "", note);
  Structure structure(checkpoint, out);
  ModelConfig config;
  try {
    config = model_config(checkpoint);
  } catch (const Error& error) {
    const bool absurd = error.code() == Code::BadInput;
    out.add(absurd ? "config" : "unsupported", "config.json", "", error.message(), error.hint());
    out.add("left-out", "config.json", "", "the tensors are not compared with the model");
    structure.check_matrices();
    return;
  }
  for (const std::string& note : config.notes) out.add("remark", "config.json", "", note);
  structure.check(config);
}

}  // namespace octet
