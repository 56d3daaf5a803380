#include "cli/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <random>

#include "base/mapped_file.h"
#include "base/plural.h"
#include "cli/device_flag.h"
#include "cli/plan_flags.h"
#include "io/hub_cache.h"
#include "text/detokenizer.h"
#include "text/utf8.h"

namespace octet {
namespace {

constexpr std::string_view kGroup = "Sampling";

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// An error of the text layer, which knows nothing of the hub.
Error with_text_files(const Error& error, const std::string& folder) {
  const std::string files[] = {"tokenizer.json", "tokenizer_config.json", "chat_template.jinja",
                               "special_tokens_map.json", "chat_template.json"};
  return with_refetch(error, folder, files);
}

}  // namespace

std::vector<Flag> sampling_flags() {
  return {
      {.name = "max-tokens",
       .letter = 'n',
       .aliases = {"n-predict"},
       .kind = FlagKind::Size,
       .metavar = "TOKENS",
       .help = "tokens of an answer; 0 only tokenises the prompt (run)",
       .default_text = "generation_config.json, else 256",
       .min = 0,
       .max = 1 << 30,
       .group = kGroup},
      {.name = "temperature",
       .kind = FlagKind::Number,
       .help = "0 takes the most likely token",
       .default_text = "generation_config.json, else 0",
       .min = 0,
       .max = 1000,
       .group = kGroup},
      {.name = "top-p",
       .kind = FlagKind::Number,
       .help = "keep the smallest set of best tokens with this probability",
       .default_text = "generation_config.json, else 1",
       .min = 0,
       .max = 1,
       .group = kGroup},
      {.name = "top-k",
       .kind = FlagKind::Integer,
       .help = "keep this many best tokens; 0 keeps all",
       .default_text = "generation_config.json, else 0",
       .min = 0,
       .max = 1 << 24,
       .group = kGroup},
      {.name = "min-p",
       .kind = FlagKind::Number,
       .help = "keep tokens of at least this share of the best probability",
       .default_text = "generation_config.json, else 0",
       .min = 0,
       .max = 1,
       .group = kGroup},
      {.name = "repetition-penalty",
       .kind = FlagKind::Number,
       .help = "over 1 makes tokens seen before less likely",
       .default_text = "generation_config.json, else 1",
       .min = 0.001,
       .max = 1000,
       .group = kGroup},
      {.name = "seed",
       .kind = FlagKind::Unsigned,
       .help = "of the draws, any number of 64 bits; the same seed gives the same answer",
       .default_text = "a random one",
       .group = kGroup},
      {.name = "stop",
       .kind = FlagKind::Repeated,
       .metavar = "TEXT",
       .help = "end the answer before this text",
       .group = kGroup},
      {.name = "ignore-eos", .help = "go on after end tokens", .group = kGroup},
  };
}

void require_utf8(std::string_view text, std::string_view from, std::string_view hint) {
  const auto bad = find_invalid_utf8(text);
  if (!bad) return;
  throw_error(Code::BadInput,
              fmt::format("{}: the text is not UTF-8: byte {} of {} is 0x{:02X}, which does not "
                          "begin a character there",
                          from, *bad, text.size(), static_cast<uint8_t>(text[*bad])),
              std::string(hint));
}

std::vector<int32_t> encode_file(const Tokenizer& tokenizer, std::string_view text,
                                 const std::string& path, size_t fewest) {
  require_utf8(text, path, kUtf8Hint);
  std::vector<int32_t> tokens = tokenizer.encode(text);
  if (tokens.size() < fewest) {
    throw_error(Code::BadInput,
                fmt::format("{}: a text of {}, expected at least {}", path,
                            counted(tokens.size(), "token"), fewest),
                "give a longer text");
  }
  return tokens;
}

std::vector<std::string> stop_texts(const ParsedArgs& args) {
  std::vector<std::string> stops = args.list("stop");
  for (const std::string& stop : stops)
    require_utf8(stop, "--stop", "an answer is UTF-8 and would never contain it");
  return stops;
}

std::string folder_of(const std::string& model) {
  std::error_code unreadable;
  if (std::filesystem::is_directory(model, unreadable)) return model;
  const std::string parent = std::filesystem::path(model).parent_path().string();
  return parent.empty() ? "." : parent;
}

Tokenizer tokenizer_of(const std::string& model) {
  const std::string folder = folder_of(model);
  const std::string missing[] = {"tokenizer.json"};
  const auto origin = hub_origin(folder);
  if (origin && !is_there(std::filesystem::path(folder) / missing[0])) {
    throw_error(Code::BadInput, fmt::format("{} has no {}", folder, missing[0]),
                fetch_hint(*origin, missing));
  }
  try {
    return Tokenizer::load(folder);
  } catch (const Error& error) {
    throw with_text_files(error, folder);
  }
}

std::optional<ChatTemplate> chat_template_of(const std::string& model) {
  const std::string folder = folder_of(model);
  try {
    return ChatTemplate::load(folder);
  } catch (const Error& error) {
    throw with_text_files(error, folder);
  }
}

Session::Session(const ParsedArgs& args, const std::string& model, int64_t sequences)
    : model_(model) {
  PlanOptions options = plan_options(args);
  options.max_sequences = sequences;
  if (options.ranks != 1) {
    throw_error(Code::CannotRun, fmt::format("-tp {}: this command runs one rank", options.ranks),
                "octet plan shows the shapes and bytes of more ranks");
  }
  const DeviceInfo info = device_of(args, true);
  device_ = open_device(args, info);
  Prepared prepared = prepare(model, false, info, std::move(options));
  require_runnable(prepared.plan);
  if (is_there(std::filesystem::path(folder_of(model)) / "tokenizer.json")) {
    tokenizer_ = tokenizer_of(model);
  }
  engine_ = std::make_unique<Engine>(std::move(prepared), *device_);
  const Checkpoint& checkpoint = engine_->checkpoint();
  const ModelConfig& config = engine_->config();
  try {
    defaults_ =
        generation_defaults(checkpoint.generation_config(), config.eos_ids, config.dims.vocab);
  } catch (const Error& error) {
    throw error.with(checkpoint.dir().string());
  }
  add_end_token();
}

// The tokenizer's own end token ends an answer beside those of the configs.
void Session::add_end_token() {
  const std::optional<int32_t> end = tokenizer_ ? tokenizer_->eos() : std::nullopt;
  std::vector<int32_t>& ids = defaults_.stop_ids;
  if (end && *end < engine_->config().dims.vocab &&
      std::find(ids.begin(), ids.end(), *end) == ids.end())
    ids.push_back(*end);
}

void Session::print_notes(const Console& console) const {
  say_quarantine_notes(engine_->plan(), console);
  for (const std::string& note : defaults_.notes) console.say(fmt::format("note: {}", note));
}

const Tokenizer& Session::tokenizer() const {
  if (!tokenizer_) tokenizer_of(model_);  // says what is missing
  OCTET_CHECK(tokenizer_.has_value(), "{} has gained a tokenizer meanwhile", model_);
  return *tokenizer_;
}

Request Session::request(const ParsedArgs& args, std::vector<int32_t> prompt) const {
  Request request;
  request.prompt = std::move(prompt);
  request.sampling = defaults_.sampling;
  request.stop_ids = defaults_.stop_ids;
  SamplingParams& s = request.sampling;
  const auto set = [&](std::string_view flag, float& value) {
    if (const auto given = args.number(flag)) value = static_cast<float>(*given);
  };
  set("temperature", s.temperature);
  set("top-p", s.top_p);
  set("min-p", s.min_p);
  set("repetition-penalty", s.repetition_penalty);
  if (args.on("ignore-eos")) request.stop_ids.clear();
  if (const auto top_k = args.integer("top-k")) s.top_k = static_cast<int32_t>(*top_k);
  s.seed = args.has("seed") ? *args.unsigned_integer("seed") : std::random_device{}();
  request.max_tokens = args.integer("max-tokens").value_or(defaults_.max_tokens.value_or(256));
  return request;
}

Answer answer(Engine& engine, const Tokenizer* tokenizer, Request request,
              std::vector<std::string> stops, const std::function<void(std::string_view)>& on_text,
              const std::atomic<bool>* interrupted) {
  Answer out;
  std::optional<Detokenizer> detokenizer;
  if (tokenizer != nullptr) detokenizer.emplace(*tokenizer, true);
  StopScanner scanner(std::move(stops));
  const std::vector<int32_t> stop_ids = request.stop_ids;
  const bool wants_logprobs = request.top_logprobs > 0;
  const auto emit = [&](std::string_view text) {
    if (text.empty()) return;
    out.text += text;
    if (on_text) on_text(text);
  };
  const auto start = std::chrono::steady_clock::now();
  auto first = start;
  const uint64_t id = engine.submit(std::move(request));
  bool done = false;
  while (!done) {
    if (interrupted != nullptr && interrupted->load(std::memory_order_relaxed)) engine.cancel(id);
    for (Event& event : engine.step()) {
      if (event.request != id) continue;
      if (event.finish == FinishReason::Failed) {
        throw_error(Code::Environment, event.failure,
                    "octet inspect names weights and scales that are damaged; where it finds none, "
                    "compare with --dtype float32 and --max-isa baseline");
      }
      if (event.token && !scanner.stopped()) {
        if (out.tokens.empty()) first = std::chrono::steady_clock::now();
        out.tokens.push_back(*event.token);
        if (wants_logprobs)
          out.logprobs.push_back({*event.token, event.logprob, std::move(event.top)});
        const bool end_token = event.finish == FinishReason::Stop;
        if (!end_token && detokenizer) emit(scanner.push(detokenizer->push(*event.token)));
        if (scanner.stopped()) {
          engine.cancel(id);
          out.finish = FinishReason::Stop;
        }
      }
      if (event.finish) {
        if (!scanner.stopped()) out.finish = *event.finish;
        done = true;
      }
    }
  }
  if (!scanner.stopped()) {
    if (detokenizer) emit(scanner.push(detokenizer->flush()));
    emit(scanner.flush());
  }
  const double total = seconds_since(start);
  out.prefill_s = out.tokens.empty() ? total : std::chrono::duration<double>(first - start).count();
  out.decode_s = total - out.prefill_s;
  return out;
}

}  // namespace octet
