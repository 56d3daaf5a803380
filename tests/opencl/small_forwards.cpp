// small_forwards plain|narrow|race: every operation of small models on the first OpenCL device, in
// small shapes, for a simulator that watches memory (tools/data_races.sh). `narrow` runs the plain
// family as GPUs do; `race` runs one kernel whose work-items write to one place, which the
// simulator must find.
#include <cstdio>
#include <filesystem>
#include <string_view>

#include "base/error.h"
#include "device/opencl.h"
#include "engine/engine.h"
#include "testing/tiny_checkpoint.h"

namespace octet {
namespace {

constexpr std::string_view kRace = R"cl(
__kernel void race(__global int* place) { place[0] = (int)get_global_id(0); }
)cl";

void run_race(Device& device) {
  const auto stream = device.make_stream();
  const Buffer place = device.allocate(sizeof(int));
  static_cast<OpenClStream&>(*stream).enqueue({"race", kRace, "-cl-std=CL1.2"}, "race",
                                              {{16, 1, 1}, {16, 1, 1}}, {place.data()});
  stream->wait();
}

// Chunks of prompts among answers, draws, penalties, log-probabilities, scores. Returns the tokens.
int64_t run_everything(const std::filesystem::path& path, Device& device, SchemeId scheme) {
  PlanOptions options;
  options.policy.prefer = scheme;
  options.max_model_len = 32;
  options.max_sequences = 3;
  options.max_batch_tokens = 5;
  Engine engine(prepare(path, false, device.info(), std::move(options)), device);
  Request greedy;
  greedy.prompt = {3, 5, 7, 9, 11, 13};
  greedy.max_tokens = 2;
  greedy.top_logprobs = 3;
  Request drawn = greedy;
  drawn.prompt = {4, 6};
  drawn.sampling = {0.9F, 20, 0.95F, 0.01F, 1.3F, 42};
  Request scored;
  scored.prompt = {1, 2, 3};
  scored.score_prompt = true;
  for (const Request& request : {greedy, drawn, scored}) engine.submit(request);
  int64_t tokens = 0;
  while (!engine.idle()) {
    for (const Event& event : engine.step()) {
      if (event.finish == FinishReason::Failed) throw Error(Code::Environment, event.failure);
      tokens += event.token ? 1 : 0;
    }
  }
  return tokens;
}

struct Form {
  const char* name;
  LayerQuant quant;
  SchemeId scheme;
};

void run_models(Device& device) {
  const Form forms[] = {
      {"plain", tiny_plain(), SchemeId::Plain},
      {"dynamic", tiny_fp8_dynamic(), SchemeId::W8A8},
      {"static", tiny_fp8_static(), SchemeId::W8A8},
      {"block", tiny_fp8_block(24, 20), SchemeId::W8A8},
      {"weight-only", tiny_fp8_weight_only(), SchemeId::W8A16},
  };
  const auto folder = std::filesystem::temp_directory_path() / "octet-small-forwards";
  for (const Form& form : forms) {
    std::filesystem::remove_all(folder);
    TinyModel model = small_tiny_model(form.quant, 70, 64);
    model.layers = 1;
    tiny_model(model).write(folder);
    std::printf("%s: %lld tokens\n", form.name,
                static_cast<long long>(run_everything(folder, device, form.scheme)));
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace octet

int main(int argc, char** argv) {
  const std::string_view what = argc == 2 ? argv[1] : "";
  if (what != "plain" && what != "narrow" && what != "race") {
    std::fputs("usage: small_forwards plain|narrow|race\n", stderr);
    return 2;
  }
  try {
    octet::OpenClClaims claims;
    claims.narrow = what == "narrow";
    const auto device = octet::make_opencl_device(0, {}, claims);
    std::printf("on \"%s\"\n", device->info().name.c_str());
    if (what == "race")
      octet::run_race(*device);
    else
      octet::run_models(*device);
    return 0;
  } catch (const octet::Error& error) {
    std::fprintf(stderr, "small_forwards: %s\n", error.message().c_str());
    return 1;
  }
}
