#pragma once
// Regular expressions over module names, as Python's re.match reads them.
#include <memory>
#include <string>
#include <string_view>

struct pcre2_real_code_8;

namespace octet {

// A compiled expression: anchored at the start of the name, open at its end. Cheap to copy,
// immutable. PCRE2 stands for Python's engine; the constructs that quantisation configs use mean
// the same in both.
class NamePattern {
 public:
  // Throws BadInput naming the expression, the offset and the reason; `where` begins the message.
  NamePattern(std::string_view expression, std::string_view where);

  const std::string& text() const { return text_; }

  // True when the expression matches a prefix of `name`. Throws BadInput when that takes more steps
  // than a module name ever needs.
  bool matches(std::string_view name) const;

 private:
  std::string text_;
  std::shared_ptr<pcre2_real_code_8> code_;
};

}  // namespace octet
