#pragma once
// Questions about one code point that the parts of a tokenizer ask, each with the definition of the
// reference (Hugging Face tokenizers, which asks Rust's standard library).
#include <cstdint>

namespace octet {

// Whether `c` has the Unicode property White_Space (Rust char::is_whitespace and \s of its regex
// crate).
bool is_white_space(uint32_t c);

// Whether `c` is of general category Nd, Nl or No in Unicode 17 (Rust char::is_numeric).
bool is_numeric(uint32_t c);

}  // namespace octet
