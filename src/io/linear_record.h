#pragma once
// The tensors of one linear layer, found by name, checked against the config and joined to one
// record.
#include <string>
#include <string_view>
#include <vector>

#include "io/checkpoint.h"

namespace octet {

// The rows of a stored matrix that are one layer, where writers put several layers one below the
// other (qkv_proj, gate_up_proj). The default is a matrix that is one layer.
struct StoredPart {
  int index = 0;
  int count = 1;
  int64_t first_row = 0;
  int64_t stored_rows = 0;  // of all parts together; 0: the layer's own
};

struct LinearRecord {
  std::string module;  // "model.layers.0.self_attn.q_proj"
  QuantView view;      // [N, K] as it lies on disk; spec is the stored one, scale dtype included
  LayerQuant quant;    // quant.weight == view.spec, but for the tile offsets of a part
  // Names consumed; live as long as the checkpoint. Empty for the second part of a matrix and on.
  std::vector<std::string_view> tensors;
};

// True when the checkpoint stores `module`.weight.
bool has_linear(const Checkpoint& checkpoint, std::string_view module);

// The record of `module`, which the model expects as [n, k]. Reads .weight, .weight_scale or
// .weight_scale_inv (one of the two), .input_scale and .bias. A static input scale that the config
// does not use is consumed all the same: view.has_input_scale is set, quant.input says whether it
// counts. Throws BadInput naming tensor, expected and found: absent weight or scale, wrong dtype or
// shape, a scale grid of another geometry, config and files that disagree about being quantised.
//
// `part` says which rows of a stored matrix [part.stored_rows, K] the layer is. Its scale per
// tensor may then be one value for all parts or one for each.
LinearRecord linear_record(const Checkpoint& checkpoint, std::string_view module, int64_t n,
                           int64_t k, const StoredPart& part = {});

}  // namespace octet
