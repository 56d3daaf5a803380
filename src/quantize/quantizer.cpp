#include "quantize/quantizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/atomic_file.h"
#include "base/atomic_folder.h"
#include "base/error.h"
#include "base/mapped_file.h"
#include "io/safetensors_writer.h"
#include "model/describe.h"
#include "quantize/weight.h"

namespace octet {
namespace {

using Json = nlohmann::ordered_json;

// Larger files beside the weights are not copied: they are other weights.
constexpr uintmax_t kMaxCompanionBytes = 64U << 20;

// What becomes of one tensor of the input.
struct TensorJob {
  const TensorEntry* entry = nullptr;
  bool quantise = false;
  int64_t layer = 0;  // index of Description::linears
};

std::string scale_name(std::string_view weight) {
  return fmt::format("{}_scale", weight);
}

std::string input_scale_name(std::string_view weight) {
  return fmt::format("{}input_scale",
                     weight.substr(0, weight.size() - std::string_view("weight").size()));
}

// Codes of a weight that holds NaN or an infinity: both become NaN.
void check_finite(std::string_view tensor, std::span<const uint8_t> codes) {
  constexpr uint8_t kNan = 0x7F;  // of E4M3, either sign
  const auto nan =
      std::find_if(codes.begin(), codes.end(), [](uint8_t code) { return (code & 0x7F) == kNan; });
  if (nan == codes.end()) return;
  throw_error(Code::BadInput,
              fmt::format("tensor \"{}\": element {} is not finite", tensor, nan - codes.begin()),
              "the checkpoint is damaged; fetch it again");
}

class Quantizer {
 public:
  Quantizer(const QuantizeJob& job, ThreadPool& pool) : job_(job), input_(*job.input), pool_(pool) {
    if (input_.quant().quantised()) {
      throw_error(
          Code::BadInput,
          fmt::format("{}: already quantised ({})", input_.dir().string(), input_.quant().method()),
          "quantise the bf16 checkpoint it was made from");
    }
    const ModelConfig config = model_config(input_);
    head_ = config.stored.head;
    const Description description = describe(config);
    std::vector<std::string> notes;
    const std::vector<LinearRecord> records = linear_records(input_, config, description, notes);
    std::map<std::string_view, int64_t, std::less<>> layers;
    for (size_t i = 0; i < records.size(); ++i) {
      // A stored matrix of several layers is quantised as one; the first of them names it.
      if (description.linears[i].role != Role::Head && !records[i].tensors.empty()) {
        layers.emplace(records[i].tensors.front(), static_cast<int64_t>(i));
      }
    }
    for (const TensorEntry& entry : input_.tensors()) {
      const auto layer = layers.find(entry.name);
      jobs_.push_back({&entry, layer != layers.end(), layer != layers.end() ? layer->second : 0});
    }
    OCTET_CHECK(!job.form->calibrated() || job.input_amax.size() == records.size(),
                "{} largest inputs for {} layers", job.input_amax.size(), records.size());
  }

  QuantizeSummary run(const std::function<void(QuantizeProgress)>& progress) {
    find_companions();
    AtomicFolder folder(job_.output, Existing::Refuse);
    progress_ = &progress;
    summary_.bytes_in = input_.file_bytes();
    for (size_t shard = 0; shard < input_.shards().size(); ++shard)
      write_shard(folder.path(), static_cast<int32_t>(shard));
    if (input_.shards().size() > 1) write_index(folder.path());
    write_config(folder.path());
    copy_companions(folder.path());
    folder.commit();
    return summary_;
  }

 private:
  std::string shard_name(int32_t shard) const {
    return input_.shards().size() == 1
               ? "model.safetensors"
               : input_.shards()[static_cast<size_t>(shard)].filename().string();
  }

  // The tensors that one input tensor becomes.
  std::vector<TensorSpec> specs_of(const TensorJob& job) const {
    const TensorEntry& entry = *job.entry;
    if (!job.quantise) return {{std::string(entry.name), entry.dtype, entry.shape}};
    const ScaleTile& tile = job_.form->weight;
    Shape scales{1};
    if (tile.granularity() != Granularity::Tensor) {
      scales = {tile.tile_rows(entry.shape[0]), tile.tile_cols(entry.shape[1])};
    }
    std::vector<TensorSpec> specs{{std::string(entry.name), DType::F8E4M3, entry.shape},
                                  {scale_name(entry.name), entry.dtype, scales}};
    if (job_.form->calibrated()) specs.push_back({input_scale_name(entry.name), entry.dtype, {1}});
    return specs;
  }

  void write_shard(const std::filesystem::path& folder, int32_t shard) {
    std::vector<TensorSpec> specs;
    for (const TensorJob& job : jobs_) {
      if (job.entry->shard != shard) continue;
      for (TensorSpec& spec : specs_of(job)) {
        files_[spec.name] = shard_name(shard);
        specs.push_back(std::move(spec));
      }
    }
    const std::pair<std::string, std::string> metadata[] = {{"format", "pt"}};
    SafetensorsWriter writer(folder / shard_name(shard), std::move(specs), metadata);
    for (const TensorJob& job : jobs_) {
      if (job.entry->shard == shard) write_tensor(writer, job);
    }
    writer.finish();
    summary_.bytes_out += writer.file_bytes();
  }

  void write_tensor(SafetensorsWriter& writer, const TensorJob& job) {
    const TensorEntry& entry = *job.entry;
    const ConstTensorView view = input_.view(entry);
    if (job.quantise) {
      ConstTensorView matrix = view;
      matrix.row_stride = entry.shape[1];
      const QuantizedWeight weight = quantize_weight(matrix, job_.form->weight, pool_);
      check_finite(entry.name, weight.codes);
      writer.write(entry.name, std::as_bytes(std::span(weight.codes)));
      writer.write(scale_name(entry.name), weight.scales);
      if (job_.form->calibrated()) {
        writer.write(input_scale_name(entry.name),
                     scale_bytes(job_.input_amax[static_cast<size_t>(job.layer)], entry.dtype));
      }
      ++summary_.quantised;
    } else {
      writer.write(entry.name, {view.data, entry.bytes});
      ++summary_.copied;
    }
    done_ += entry.bytes;
    if (*progress_) (*progress_)({done_, summary_.bytes_in});
  }

  void write_index(const std::filesystem::path& folder) const {
    Json map = Json::object();
    for (const auto& [name, file] : files_) map[name] = file;
    const Json index{{"metadata", {{"total_size", summary_.bytes_out}}},
                     {"weight_map", std::move(map)}};
    write_file(folder / "model.safetensors.index.json", index.dump(2) + "\n");
  }

  void write_config(const std::filesystem::path& folder) const {
    Json config = Json::parse(input_.config().dump());
    config["quantization_config"] = Json::parse(quantization_config(*job_.form, head_));
    write_file(folder / "config.json", config.dump(2) + "\n");
  }

  // Everything else that belongs to the model: tokenizer, templates, generation config, licence.
  void copy_companions(const std::filesystem::path& folder) const {
    for (const std::filesystem::path& path : companions_) {
      std::error_code error;
      std::filesystem::copy_file(path, folder / path.filename(), error);
      if (error) {
        throw_error(Code::Environment,
                    fmt::format("{}: cannot copy to {}: {}", path.string(), folder.string(),
                                error.message()),
                    "check the space and the permissions of the disk");
      }
    }
  }

  // Before the work: a file that cannot be read ends it.
  void find_companions() {
    for (const auto& file : std::filesystem::directory_iterator(input_.dir())) {
      const std::string name = file.path().filename().string();
      const std::string extension = file.path().extension().string();
      const bool weights = extension == ".safetensors" || extension == ".bin" ||
                           extension == ".pt" || extension == ".pth" || extension == ".gguf" ||
                           name.ends_with(".index.json");
      std::error_code unreadable;
      const auto type = file.status(unreadable).type();
      const bool other = type != std::filesystem::file_type::regular &&
                         type != std::filesystem::file_type::none &&
                         type != std::filesystem::file_type::unknown;
      if (other || weights || name == "config.json") continue;
      if (RandomAccessFile(file.path()).size() > kMaxCompanionBytes) continue;
      companions_.push_back(file.path());
    }
  }

  const QuantizeJob& job_;
  const Checkpoint& input_;
  ThreadPool& pool_;
  std::vector<TensorJob> jobs_;
  std::string head_;
  std::vector<std::filesystem::path> companions_;
  std::map<std::string, std::string> files_;  // tensor -> file
  const std::function<void(QuantizeProgress)>* progress_ = nullptr;
  uint64_t done_ = 0;
  QuantizeSummary summary_;
};

}  // namespace

QuantizeSummary quantize(const QuantizeJob& job, ThreadPool& pool,
                         const std::function<void(QuantizeProgress)>& progress) {
  return Quantizer(job, pool).run(progress);
}

}  // namespace octet
