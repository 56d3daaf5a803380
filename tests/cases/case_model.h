#pragma once
// What the cases share: tiny models in folders, plans and answers of them, and the comparison with
// a reference in double precision.
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "model/prepare.h"
#include "testing/reference_model.h"
#include "testing/tiny_checkpoint.h"

namespace octet {

// Model M0 of the cases with the given words for its linear layers.
TinyModel m0(LayerQuant quant = tiny_plain());
TinyModel m0_tensor();    // M0-T
TinyModel m0_channel();   // M0-C
TinyModel m0_block();     // M0-B: quant_method fp8
TinyModel m0_ct_block();  // M0-CTB: compressed-tensors

// Joins q, k, v and gate, up of every layer as Phi-3 stores them, and says so in the config.
void store_as_phi3(TinyCheckpoint& checkpoint, int64_t layers);

// Ids for a model of `vocab` tokens.
std::vector<int32_t> some_ids(size_t count, int64_t vocab = 512, uint64_t seed = 3);

// The plan of a folder for this machine with two threads and float32 carriers.
Prepared planned(const std::filesystem::path& dir, PlanOptions options = {});

// Log-probabilities [tokens][vocab] that the engine computes, `chunk` rows per step.
std::vector<std::vector<float>> our_logprobs(const std::filesystem::path& dir,
                                             const std::vector<int32_t>& ids,
                                             PlanOptions options = {}, int64_t chunk = 512);

// Expects the engine's answer to be the reference's within float32 sums, a ten-thousandth of the
// range of the logits. Activations that lie between two codes may be rounded to the other one,
// which moves logits by a hundredth: of several sequences all must be that near, and one exact.
void expect_reference(const std::filesystem::path& dir, const TinyCheckpoint& checkpoint,
                      const TinyModel& model, const ReferenceDetails& details = {},
                      size_t tokens = 6);

// The message of the error that `act` throws, checked to be of `code`; a failure when there is
// none.
std::string refusal_of(const std::function<void()>& act, Code code = Code::BadInput);

// The words of the record of `module`.
const LayerQuant& quant_of(const Prepared& prepared, const std::string& module);

// Numbers of modules that are stored in 8 bits, and of those that are not.
struct Stored {
  int quantised = 0;
  int plain = 0;
  bool operator==(const Stored&) const = default;
};
Stored count_stored(const Prepared& prepared);

// Everything a plan says, one line per note, in one text.
std::string all_notes(const Prepared& prepared);

}  // namespace octet
