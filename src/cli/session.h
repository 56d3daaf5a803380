#pragma once
// What run, chat and perplexity share: a loaded model with its tokenizer, and one answer at a time.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/console.h"
#include "cli/flags.h"
#include "engine/defaults.h"
#include "engine/engine.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace octet {

// --temperature, --top-p, --top-k, --min-p, --repetition-penalty, --seed, --stop, -n.
std::vector<Flag> sampling_flags();

inline constexpr std::string_view kUtf8Hint =
    "convert the text to UTF-8, for example with iconv, or set the terminal to UTF-8";
// Throws BadInput with the first wrong byte; `from`, a flag or a file, begins the message.
void require_utf8(std::string_view text, std::string_view from, std::string_view hint = kUtf8Hint);

// The tokens of a text. Throws BadInput naming its file when it is not UTF-8 or has fewer than
// `fewest` tokens; nothing is predicted of less than 2.
std::vector<int32_t> encode_file(const Tokenizer& tokenizer, std::string_view text,
                                 const std::string& path, size_t fewest = 2);

// The texts of --stop. Throws BadInput for one that is not UTF-8, which no answer can contain.
std::vector<std::string> stop_texts(const ParsedArgs& args);

// A model ready to answer on this machine, by the plan's flags.
class Session {
 public:
  // Opens and loads `model`; a plan that cannot run is an error with every reason. `sequences` run
  // at a time.
  Session(const ParsedArgs& args, const std::string& model, int64_t sequences);

  Engine& engine() { return *engine_; }
  const Engine& engine() const { return *engine_; }
  // Throws BadInput when the model has none.
  const Tokenizer& tokenizer() const;
  // Null when the model has none: raw token ids can be run all the same.
  const Tokenizer* tokenizer_if_any() const { return tokenizer_ ? &*tokenizer_ : nullptr; }

  // Prints what the checkpoint's defaults leave out, to the standard error.
  void print_notes(const Console& console) const;

  // A request with the checkpoint's defaults and the flags' values over them. Throws BadInput
  // naming the flag.
  Request request(const ParsedArgs& args, std::vector<int32_t> prompt) const;

 private:
  void add_end_token();

  std::unique_ptr<Device> device_;
  std::unique_ptr<Engine> engine_;
  std::string model_;
  std::optional<Tokenizer> tokenizer_;
  GenerationDefaults defaults_;
};

// The tokenizer of a model folder, or of the folder that a file lies in, and its chat template;
// nothing when it has none. Errors say how to fetch a damaged file of a hub snapshot again.
Tokenizer tokenizer_of(const std::string& model);
std::optional<ChatTemplate> chat_template_of(const std::string& model);
std::string folder_of(const std::string& model);

struct TokenLogprob {
  int32_t token = 0;
  float logprob = 0;
  std::vector<std::pair<int32_t, float>> top;
};

struct Answer {
  std::vector<int32_t> tokens;  // the end token included, if there was one
  std::string text;             // without it, and cut at a stop string
  FinishReason finish = FinishReason::Length;
  std::vector<TokenLogprob> logprobs;
  double prefill_s = 0;  // until the first token
  double decode_s = 0;   // the others
};

// Runs one request to its end. Without a tokenizer the answer has no text. `on_text` gets whole
// characters as they come; the flag `interrupted` ends the answer early. Throws Environment when
// the model produced values that are not finite.
Answer answer(Engine& engine, const Tokenizer* tokenizer, Request request,
              std::vector<std::string> stops, const std::function<void(std::string_view)>& on_text,
              const std::atomic<bool>* interrupted);

}  // namespace octet
