#pragma once
// The layers and tensors of a model by name, and what a plan needs to know of a checkpoint.
#include <string>
#include <vector>

#include "io/checkpoint.h"
#include "io/linear_record.h"
#include "model/config.h"
#include "plan/model_plan.h"

namespace octet {

// What a linear layer is for in the decoder graph.
enum class Role : uint8_t { Q, K, V, O, Gate, Up, Down, Head };

struct LinearRef {
  std::string module;   // its name: the stored module, or one of the parts of it ("qkv_proj.q")
  std::string pattern;  // the same with the layer number as "*"
  std::string stored;   // tensor prefix in the checkpoint
  StoredPart part;      // the rows of the stored tensor that it is
  Role role = Role::Q;
  int64_t layer = 0;  // 0 for the head
  LayerShape shape;
  Parallel parallel = Parallel::None;
};

// A tensor that is not a linear layer: embedding and norms.
struct TensorRef {
  std::string name;
  Shape shape;
};

// Every layer of a model, in the order of computation: per layer q k v o gate up down, then the
// head.
struct Description {
  std::vector<LinearRef> linears;
  std::vector<TensorRef> tensors;
  std::vector<std::string> experts;  // modules of expert MLPs, which no operation computes
};

Description describe(const ModelConfig& config);

// read_config() of the checkpoint, and what only its files tell: where the text model's tensors are
// (a wrapper's prefix), and whether a tied head is stored all the same: one that differs from the
// embedding, or is quantised, is used and tied_embeddings becomes false, with a note.
ModelConfig model_config(const Checkpoint& checkpoint);

// The names of the tensors that are not linear layers.
std::string embedding_name(const ModelConfig& config);
std::string final_norm_name(const ModelConfig& config);
// "model.layers.3.input_layernorm.weight" of 3 and "input_layernorm".
std::string layer_tensor_name(const ModelConfig& config, int64_t layer, std::string_view module);

// The records of description.linears in that order; a tied head is a record of the embedding's
// bytes. Checks every shape and that each tensor of the checkpoint is used exactly once or skipped
// for a reason, which is added to `notes`.
std::vector<LinearRecord> linear_records(const Checkpoint& checkpoint, const ModelConfig& config,
                                         const Description& description,
                                         std::vector<std::string>& notes);

// What make_plan needs. `carrier` decides the dtype of the KV cache: float32 with float32 carriers,
// else bfloat16.
PlanRequest plan_request(const Checkpoint& checkpoint, const ModelConfig& config,
                         const Description& description, std::span<const LinearRecord> records,
                         Carrier carrier);

}  // namespace octet
