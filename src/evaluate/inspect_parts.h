#pragma once
// What the parts of inspect() share: the tensors that could be read, and where findings go.
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/mapped_file.h"
#include "evaluate/inspect.h"
#include "io/checkpoint.h"
#include "io/safetensors_header.h"

namespace octet {

// One tensor, of a whole checkpoint or of the shards that are left of a broken one.
struct StoredTensor {
  std::string_view name;
  DType dtype = DType::F32;
  Shape shape;
  std::span<const std::byte> bytes;  // not always aligned for dtype
};

class TensorSet {
 public:
  void add(StoredTensor tensor);
  const StoredTensor* find(std::string_view name) const;
  const std::vector<StoredTensor>& all() const { return tensors_; }

 private:
  std::vector<StoredTensor> tensors_;
  std::map<std::string_view, size_t> by_name_;
};

// A model folder as far as it could be opened.
struct Inspected {
  std::filesystem::path dir;
  std::unique_ptr<nlohmann::json> config;  // config.json, an object
  std::optional<Checkpoint> checkpoint;    // nothing when Octet itself refuses to open it
  TensorSet tensors;
  bool complete = false;  // every shard that should be there could be read

  // Owners of a broken checkpoint's names and bytes.
  NameArena names;
  std::vector<MappedFile> maps;
};

// Collects findings by the ids of rules.
class Findings {
 public:
  // `id` must be one of inspect_rules().
  void add(std::string_view id, std::string subject, std::string expected, std::string got,
           std::string hint = {}, std::vector<std::string> names = {});
  // True when a finding of any rule names `subject`.
  bool has(std::string_view subject) const { return subjects_.count(subject) != 0; }
  bool empty() const { return list_.empty(); }
  // Sorted by rule, otherwise as they came.
  std::vector<Finding> take();

 private:
  std::vector<Finding> list_;
  std::set<std::string, std::less<>> subjects_;
};

// The module of "MODULE.weight"; nothing for other names.
std::optional<std::string_view> module_of_weight(std::string_view tensor);

// Each part looks at one thing; all of them read what is there and add to `out`.
std::unique_ptr<Inspected> open_for_inspection(const std::filesystem::path& model, Findings& out);
void inspect_values(const Inspected& model, ThreadPool& pool,
                    const std::function<void(uint64_t, uint64_t)>& progress, Findings& out);
void inspect_structure(const Inspected& model, Findings& out);
void inspect_patterns(const Inspected& model, Findings& out);
void inspect_text(const Inspected& model, Findings& out);

}  // namespace octet
