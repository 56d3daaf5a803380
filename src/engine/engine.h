#pragma once
// Runs requests over one model: admits them, builds batches, samples, and hands out tokens.
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/request.h"
#include "model/decoder.h"
#include "model/prepare.h"

namespace octet {

// Owns the loaded model, its KV memory and the decoder. Thread: one caller at a time.
class Engine {
 public:
  // Loads the weights as the plan says. Throws CannotRun with the plan's failures. The device must
  // outlive the engine.
  Engine(Prepared prepared, Device& device);
  ~Engine();
  Engine(Engine&&) = delete;

  const ModelPlan& plan() const;
  const Checkpoint& checkpoint() const;
  const ModelConfig& config() const;

  // Queues a request and returns its number. Throws BadInput when a token is not in the vocabulary
  // or the prompt leaves no room in the context (both numbers named).
  uint64_t submit(Request request);
  // Ends a request at the next step.
  void cancel(uint64_t request);
  // True when nothing is queued or running.
  bool idle() const;
  // One forward pass over what is running; events of requests in the order they were submitted.
  std::vector<Event> step();

  // Calibration: see Decoder.
  void watch_inputs();
  std::vector<float> input_amax();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace octet
