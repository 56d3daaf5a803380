// A safetensors file of any bytes: its header, and the views of a checkpoint that holds it.
#include <cstdint>
#include <fstream>

#include "fuzz_target.h"
#include "io/checkpoint.h"
#include "io/safetensors_header.h"

namespace octet {
namespace {

// A folder with config.json and a link to a file in memory as the weights.
struct Model {
  Model() {
    std::ofstream(folder.path() / "config.json") << "{}";
    std::filesystem::create_symlink(weights.path(), folder.path() / "model.safetensors");
  }
  MemoryFile weights{"weights"};
  ScratchFolder folder;
};

// Reads the ends of every tensor: a view that leaves the map is seen by the sanitizer or faults.
void touch(const Checkpoint& checkpoint) {
  unsigned sum = 0;
  for (const TensorEntry& entry : checkpoint.tensors()) {
    const ConstTensorView view = checkpoint.view(entry);
    if (checkpoint.find(entry.name) != &entry) std::abort();
    if (view.data == nullptr || entry.bytes == 0) continue;
    sum += std::to_integer<unsigned>(view.data[0]) +
           std::to_integer<unsigned>(view.data[entry.bytes - 1]);
  }
  const volatile unsigned kept = sum;
  static_cast<void>(kept);
}

}  // namespace
}  // namespace octet

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace octet;
  static const Model model;
  model.weights.assign(data, size);
  expect_no_bug([] {
    NameArena arena;
    HeaderReader(arena).read(model.weights.path(), true);
  });
  for (const bool headers_only : {true, false}) {
    expect_no_bug([&] { touch(Checkpoint::open(model.folder.path(), headers_only)); });
  }
  return 0;
}
