#pragma once
// Every kernel that a plan chose, on the model's own weights and shapes, against double precision.
// What is compared and how many values: docs/CHECKS.md.
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "evaluate/weight_scan.h"
#include "model/prepare.h"
#include "plan/quarantine.h"

namespace octet {

struct VerifyOptions {
  bool all =
      false;  // every layer and every output; else three layers of a kind and sampled outputs
  uint64_t seed = 1;  // of the inputs and of the sample
  std::string octet;  // version of the program, for quarantine entries
};

// Linear layers that are alike and run by one kernel.
struct VerifiedLayers {
  std::string pattern;  // "model.layers.*.mlp.up_proj"
  LayerShape shape;
  std::string weight, input;  // as stored; "unquantised" where activations are not
  std::string kernel;
  std::string scheme;
  int64_t layers = 0;   // that the plan has
  int64_t checked = 0;  // that were run
  int64_t values = 0;   // outputs compared
  // Signal to noise of the kernel against exact sums over the same input, and of the whole layer
  // against the input before it was quantised, in dB; the lowest of the layers checked. Nothing: no
  // difference, or no quantised input.
  std::optional<double> snr_db, input_snr_db;
  double worst = 0;          // largest error, as a multiple of its bound
  std::string worst_module;  // where
  std::string failure;       // empty: every value was right
};

// A kernel that makes the inputs of linear layers.
struct VerifiedInput {
  std::string output;  // "f8e4m3/row/f32/dynamic"
  std::string kernel;
  int64_t values = 0;   // codes compared, to the bit
  std::string failure;  // empty: all were equal
};

// A kernel of another operation.
struct VerifiedOp {
  std::string op;       // as the plan names it: "attention"
  std::string problem;  // in words: "heads 9/3x64, KV bf16"; "any" where a kernel takes every one
  std::string kernel;
  int64_t values = 0;   // results compared
  double worst = 0;     // largest error, as a multiple of its bound; 0: all were equal
  std::string failure;  // empty: every value was right
};

struct Verification {
  std::vector<VerifiedLayers> layers;
  std::vector<VerifiedInput> inputs;
  std::vector<VerifiedOp> operations;
  std::vector<DamagedTensor> damaged;     // tensors with values that no model has
  std::vector<QuarantineEntry> failures;  // kernels that gave wrong values

  bool passed() const { return damaged.empty() && failures.empty(); }
};

// What verify() will read, in bytes: of the files, and of the layers it will run.
uint64_t verify_bytes(const Prepared& prepared, const VerifyOptions& options);

// Runs the plan's kernels. `progress` gets how many of verify_bytes() are
// done; what it throws ends the run. Throws the plan's failures if it has any. Cost:
// reads every tensor once; about a second per 10^9 weights for the sample.
Verification verify(const Prepared& prepared, Device& device, const VerifyOptions& options,
                    const std::function<void(uint64_t)>& progress);

// As one JSON object; docs/JSON.md names its fields.
std::string to_json(const Verification& verification);

}  // namespace octet
