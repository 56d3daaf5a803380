#pragma once
// What a dialect's parser hands to QuantConfig: one question per module, answered by data.
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "io/json_field.h"
#include "io/name_pattern.h"
#include "io/quant_config.h"

namespace octet {

// A parsed quantization_config of one dialect. Immutable after parsing.
class QuantDialect {
 public:
  virtual ~QuantDialect() = default;
  // Never empty for a dialect that has targets; false when the config quantises no linear layer.
  virtual bool quantised() const = 0;
  virtual QuantMatch explain(std::string_view module, std::string_view class_name) const = 0;

  std::string method;
  std::string format;
  std::optional<KvQuant> kv_cache;
  std::vector<std::string> notes;
};

// quant_method "compressed-tensors". Throws BadInput.
std::unique_ptr<QuantDialect> parse_compressed_tensors(const JsonField& config);

// quant_method "fp8". Throws BadInput.
std::unique_ptr<QuantDialect> parse_fp8(const JsonField& config);

// Names of modules mapped to a number. A name counts for its module whatever wrapper components
// ("model.", "language_model.") either side has in front, and a fused name for its parts.
class NameSet {
 public:
  // False when `name` is there already with another value.
  bool add(std::string_view name, int value);
  // The value of the entry that names `module`, and that entry.
  std::optional<std::pair<std::string_view, int>> find(std::string_view module) const;

 private:
  struct Entry {
    std::string name;
    int value;
  };
  std::map<std::string, Entry, std::less<>> by_name_;  // key: without wrappers
};

// True when `pattern` matches `module`, or its fused name where the expression spells that name
// out: "re:.*v_proj" must not catch q_proj by way of "qkv_proj".
bool matches_module(const NamePattern& pattern, std::string_view module);

// The expression of an entry "re:EXPRESSION"; nothing for a plain name.
std::optional<std::string_view> expression_of(std::string_view entry);

}  // namespace octet
