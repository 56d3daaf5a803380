#pragma once
// Files that are wrong on purpose, and the messages they give.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <string>
#include <string_view>

#include "base/error.h"
#include "testing/tiny_checkpoint.h"

namespace octet {

inline void write_bytes(const std::filesystem::path& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

// A safetensors file of any header text, with the length that `header` has.
inline std::string safetensors_bytes(const std::string& header, size_t data_bytes) {
  const uint64_t length = header.size();
  std::string file(sizeof length, '\0');
  std::memcpy(file.data(), &length, sizeof length);
  return file + header + std::string(data_bytes, 'x');
}

// One entry of a header: "name":{...}.
inline std::string header_entry(const std::string& name, const std::string& dtype,
                                const std::string& shape, const std::string& offsets) {
  return fmt::format(R"("{}":{{"dtype":"{}","shape":{},"data_offsets":{}}})", name, dtype, shape,
                     offsets);
}

// The message of the BadInput error that `call` throws; a failure when it throws none.
inline std::string bad_input(const auto& call) {
  try {
    call();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Code::BadInput) << e.message();
    return e.message();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

}  // namespace octet
