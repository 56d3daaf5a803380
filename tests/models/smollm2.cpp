#include "tests/models/smollm2.h"

#include <unistd.h>

#include <fstream>
#include <stdexcept>

#include "io/safetensors_writer.h"
#include "quantize/quantizer.h"
#include "tests/models/golden.h"

namespace octet {
namespace {

namespace fs = std::filesystem;

const fs::path kBase = "models/SmolLM2-135M-Instruct";

// A folder of this process, removed when it ends.
struct Scratch {
  Scratch() : path(fs::temp_directory_path() / ("octet-models-" + std::to_string(getpid()))) {
    fs::create_directories(path);
  }
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  fs::path path;
};

const fs::path& scratch() {
  static const Scratch kScratch;
  return kScratch.path;
}

// The largest inputs from which bf16(amax / 448) gives the scales that llm-compressor wrote.
std::vector<float> golden_amax(const Checkpoint& checkpoint) {
  const nlohmann::json golden = read_golden("testing/data/quantize/smollm2.json");
  std::vector<float> amax;
  for (const LinearRef& ref : describe(read_config(checkpoint.config())).linears) {
    const auto it = golden["input_scale"].find(ref.module);
    amax.push_back(it == golden["input_scale"].end() ? 0.0F : (*it)[0].get<float>() * 448.0F);
  }
  return amax;
}

int layer_of(std::string_view tensor) {
  constexpr std::string_view kPrefix = "model.layers.";
  return tensor.starts_with(kPrefix) ? std::stoi(std::string(tensor.substr(kPrefix.size()))) : -1;
}

}  // namespace

fs::path smollm2(const std::string& form) {
  if (!fs::exists(kBase / "model.safetensors")) {
    throw std::runtime_error(kBase.string() + " is missing: run tools/get_smollm2.py " +
                             kBase.string());
  }
  if (form == "bf16") return kBase;
  fs::path path = scratch() / form;
  if (fs::exists(path)) return path;
  const Checkpoint input = Checkpoint::open(kBase);
  QuantizeJob job;
  job.input = &input;
  job.output = path;
  job.form = &find_form(form);
  if (job.form->calibrated()) job.input_amax = golden_amax(input);
  ThreadPool pool(2);
  quantize(job, pool, {});
  return path;
}

fs::path smollm2_first_layers(const std::string& form, int layers) {
  fs::path path = scratch() / (form + "-" + std::to_string(layers));
  if (fs::exists(path)) return path;
  const Checkpoint whole = Checkpoint::open(smollm2(form));
  std::vector<TensorSpec> specs;
  for (const TensorEntry& entry : whole.tensors()) {
    if (layer_of(entry.name) < layers)
      specs.push_back({std::string(entry.name), entry.dtype, entry.shape});
  }
  fs::create_directories(path);
  SafetensorsWriter writer(path / "model.safetensors", specs);
  for (const TensorSpec& spec : specs) {
    const TensorEntry& entry = *whole.find(spec.name);
    writer.write(spec.name, {whole.view(entry).data, entry.bytes});
  }
  writer.finish();
  nlohmann::json config = whole.config();
  config["num_hidden_layers"] = layers;
  std::ofstream(path / "config.json") << config.dump();
  return path;
}

std::vector<int32_t> greedy(Engine& engine, const std::vector<int32_t>& prompt, int64_t count) {
  Request request;
  request.prompt = prompt;
  request.max_tokens = count;
  engine.submit(std::move(request));
  std::vector<int32_t> tokens;
  while (!engine.idle()) {
    for (const Event& event : engine.step()) {
      if (event.token) tokens.push_back(*event.token);
    }
  }
  return tokens;
}

}  // namespace octet
