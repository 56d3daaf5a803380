#pragma once
// The normalizer part of tokenizer.json: none, or NFC. Form C is that of utf8proc's Unicode version
// (15 in Debian 12); the reference's tables are older, so runs of combining marks that are newer
// than those may be ordered otherwise there.
#include <string>
#include <string_view>

namespace octet {

// Puts text into Unicode normalization form C, or leaves it alone.
class Normalizer {
 public:
  Normalizer() = default;
  explicit Normalizer(bool nfc) : nfc_(nfc) {}

  bool changes_text() const { return nfc_; }
  // The normalized text: `text` itself, or a view of `buffer`. Requires well-formed UTF-8.
  std::string_view apply(std::string_view text, std::string& buffer) const;

 private:
  bool nfc_ = false;
};

}  // namespace octet
