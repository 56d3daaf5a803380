#pragma once
// Roundings of activations that a golden file has decided (tools/golden_roundings.py), forced upon
// a model under test, so that its quantised arithmetic can be compared closely with another's.
#include <cstdint>
#include <filesystem>
#include <vector>

#include "model/prepare.h"

namespace octet {

// The code of one element of a quantised input.
struct DecidedCode {
  int64_t index;  // row * width + column
  uint8_t code;
};

// Per quantised input of a forward pass, in the order it is made, ascending by index.
using DecidedSequence = std::vector<std::vector<DecidedCode>>;

// The sequences of a file of roundings whose model quantises `inputs` inputs. Throws when the file
// is missing or has another length.
std::vector<DecidedSequence> read_roundings(const std::filesystem::path& path, size_t inputs);

// What became of the decided codes.
struct RoundingCounts {
  int64_t seen = 0;
  int64_t changed = 0;  // the model had rounded to another code
  int64_t far = 0;      // left alone: the decided code is not beside the model's own value
};

// Lets every quantised input that `prepared` plans take the codes of the sequence in use. One model
// at a time.
void force_roundings(Prepared& prepared);

// From now on the steps of one sequence, from its first token, take these codes.
void use_roundings(const DecidedSequence& sequence);

// The counts since use_roundings().
RoundingCounts rounding_counts();

}  // namespace octet
