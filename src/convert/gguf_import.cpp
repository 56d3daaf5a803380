#include "convert/gguf_import.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/atomic_file.h"
#include "base/atomic_folder.h"
#include "base/error.h"
#include "convert/gguf_decode.h"
#include "convert/gguf_model.h"
#include "convert/gguf_tokenizer.h"
#include "io/safetensors_writer.h"
#include "text/tokenizer.h"

namespace octet {
namespace {

using Json = nlohmann::ordered_json;

// Elements converted at a time: 2 MiB of bf16.
constexpr int64_t kChunkElements = 1 << 20;

constexpr std::string_view kOtherModelHint =
    "a model of this form cannot be imported; get the model as safetensors, or choose another";

// Row of the file that becomes row `row` of the checkpoint. The file has the two halves of a head
// interleaved, (0, half, 1, half + 1, ...); the checkpoint has them one after the other.
int64_t source_row(int64_t row, int64_t rows, int64_t heads) {
  if (heads == 0) return row;
  const int64_t per_head = rows / heads;
  const int64_t half = per_head / 2;
  const int64_t in_head = row % per_head;
  return row - in_head + in_head % half * 2 + in_head / half;
}

std::string shard_name(size_t index, size_t count) {
  return count == 1 ? "model.safetensors"
                    : fmt::format("model-{:05}-of-{:05}.safetensors", index + 1, count);
}

class Importer {
 public:
  Importer(const ImportJob& job, const std::function<void(ImportProgress)>& progress)
      : job_(job), file_(*job.input), progress_(progress), model_(read_gguf_model(file_)) {
    summary_.architecture = model_.family->architecture;
    summary_.tensors = static_cast<int64_t>(model_.tensors.size());
    for (const ImportTensor& tensor : model_.tensors) summary_.bytes_in += tensor.source->bytes;
  }

  ImportSummary run() {
    GgufTokenizer tokenizer = read_gguf_tokenizer(file_, model_.vocab, model_.max_position);
    const nlohmann::json config = config_with(tokenizer);  // refuses before anything is written
    AtomicFolder folder(job_.output, Existing::Refuse);
    write_file(folder.path() / "config.json", config.dump(2) + "\n");
    Json generation{{"_from_model_config", true}};
    for (const auto& [name, id] : tokenizer.ids) generation[name] = id;
    write_file(folder.path() / "generation_config.json", generation.dump(2) + "\n");
    write_file(folder.path() / "tokenizer.json", tokenizer.tokenizer_json);
    write_file(folder.path() / "tokenizer_config.json", tokenizer.tokenizer_config_json);
    check_tokenizer(folder.path());
    write_weights(folder.path());
    folder.commit();
    summary_.notes = std::move(model_.notes);
    summary_.notes.insert(summary_.notes.end(), tokenizer.notes.begin(), tokenizer.notes.end());
    return std::move(summary_);
  }

 private:
  nlohmann::json config_with(const GgufTokenizer& tokenizer) const {
    nlohmann::json config = gguf_config(file_, model_);
    for (const auto& [name, id] : tokenizer.ids) config[name] = nlohmann::json(id);
    return config;
  }

  void check_tokenizer(const std::filesystem::path& folder) const {
    try {
      Tokenizer::load(folder);
    } catch (const Error& error) {
      // Its path is that of a folder that goes away: name the file it came from.
      std::string what = error.message();
      const std::string prefix = (folder / "tokenizer.json").string() + ": ";
      if (what.starts_with(prefix)) what.erase(0, prefix.size());
      throw Error(
          error.code(),
          fmt::format("{}: its tokenizer cannot be read back: {}", file_.path().string(), what),
          "the tokenizer of the file is damaged, or of a kind that octet does not read");
    }
  }

  uint64_t bytes_of(const ImportTensor& tensor) const {
    return static_cast<uint64_t>(tensor.source->shape.elements()) * sizeof(uint16_t);
  }

  // The tensors of each file, in the order of the graph.
  std::vector<std::vector<const ImportTensor*>> make_shards() const {
    std::vector<std::vector<const ImportTensor*>> shards(1);
    uint64_t bytes = 0;
    for (const ImportTensor& tensor : model_.tensors) {
      const uint64_t more = bytes_of(tensor);
      if (!shards.back().empty() && bytes + more > job_.max_shard_bytes) {
        shards.emplace_back();
        bytes = 0;
      }
      shards.back().push_back(&tensor);
      bytes += more;
    }
    return shards;
  }

  void write_weights(const std::filesystem::path& folder) {
    const auto shards = make_shards();
    Json map = Json::object();
    uint64_t total = 0;
    for (size_t i = 0; i < shards.size(); ++i) {
      const std::string name = shard_name(i, shards.size());
      write_shard(folder / name, shards[i]);
      for (const ImportTensor* tensor : shards[i]) {
        if (shards.size() > 1) map[tensor->name] = name;
        total += bytes_of(*tensor);
      }
    }
    summary_.files = static_cast<int64_t>(shards.size());
    if (shards.size() == 1) return;
    const Json index{{"metadata", {{"total_size", total}}}, {"weight_map", std::move(map)}};
    write_file(folder / "model.safetensors.index.json", index.dump(2) + "\n");
  }

  void write_shard(const std::filesystem::path& path,
                   const std::vector<const ImportTensor*>& tensors) {
    std::vector<TensorSpec> specs;
    for (const ImportTensor* tensor : tensors) {
      specs.push_back({tensor->name, DType::BF16, tensor->source->shape});
    }
    const std::pair<std::string, std::string> metadata[] = {{"format", "pt"}};
    SafetensorsWriter writer(path, std::move(specs), metadata);
    for (const ImportTensor* tensor : tensors) write_tensor(writer, *tensor);
    writer.finish();
    summary_.bytes_out += writer.file_bytes();
  }

  void write_tensor(SafetensorsWriter& writer, const ImportTensor& tensor) {
    const GgufTensor& source = *tensor.source;
    const bool matrix = source.shape.rank() == 2;
    // A vector is a column: its rows may have to be put apart just the same.
    const int64_t rows = source.shape[0];
    const int64_t cols = matrix ? source.shape[1] : 1;
    if (tensor.interleaved_heads == 0 && !matrix) {
      write_rows(writer, tensor, {0, 1}, rows);
    } else {
      const int64_t step = std::max<int64_t>(1, kChunkElements / cols);
      for (int64_t row = 0; row < rows; row += step) {
        write_rows(writer, tensor, {row, std::min(rows, row + step)}, cols);
      }
    }
  }

  // Converts and writes rows of `cols` elements.
  void write_rows(SafetensorsWriter& writer, const ImportTensor& tensor, Range rows, int64_t cols) {
    const GgufTensor& source = *tensor.source;
    const std::span<const std::byte> bytes = file_.bytes(source);
    const int64_t all_rows = source.shape.elements() / cols;
    const uint64_t row_bytes = source.bytes / static_cast<uint64_t>(all_rows);
    values_.resize(static_cast<size_t>(rows.size() * cols));
    for (int64_t row = rows.begin; row < rows.end; ++row) {
      const int64_t from = source_row(row, all_rows, tensor.interleaved_heads);
      const auto out = std::span(values_).subspan(static_cast<size_t>((row - rows.begin) * cols),
                                                  static_cast<size_t>(cols));
      const size_t bad =
          decode_blocks(*source.type->decode,
                        bytes.subspan(static_cast<uint64_t>(from) * row_bytes, row_bytes), out);
      if (bad == out.size()) continue;
      file_.fail(fmt::format("tensor {}: element {} is not finite in bf16", source.name,
                             from * cols + static_cast<int64_t>(bad)),
                 "the file is damaged, or was made of a damaged model");
    }
    writer.write(tensor.name, std::as_bytes(std::span(values_)));
    done_ += static_cast<uint64_t>(rows.size()) * row_bytes;
    if (progress_) progress_({done_, summary_.bytes_in});
  }

  const ImportJob& job_;
  const GgufFile& file_;
  const std::function<void(ImportProgress)>& progress_;
  GgufModel model_;
  std::vector<uint16_t> values_;
  uint64_t done_ = 0;
  ImportSummary summary_;
};

}  // namespace

ImportSummary import_gguf(const ImportJob& job,
                          const std::function<void(ImportProgress)>& progress) {
  try {
    return Importer(job, progress).run();
  } catch (const Error& error) {
    if (error.code() == Code::BadInput) throw error.or_hint(kGgufHint);
    if (error.code() == Code::CannotRun) throw error.or_hint(kOtherModelHint);
    throw;
  }
}

}  // namespace octet
