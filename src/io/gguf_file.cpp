#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "io/gguf.h"
#include "io/hub_cache.h"

namespace octet {

GgufFile::GgufFile(std::filesystem::path path, MappedFile map, GgufHeader header)
    : path_(std::move(path)), map_(std::move(map)), header_(std::move(header)) {}

GgufFile GgufFile::open(const std::filesystem::path& path) {
  check_fetched(path);
  MappedFile map(path);
  GgufHeader header = parse_gguf(map.bytes(), path.string());
  GgufFile file(path, std::move(map), std::move(header));
  const int64_t parts = file.find_integer("split.count", 0, INT64_MAX).value_or(1);
  if (parts > 1) {
    file.fail(fmt::format("is one of {} parts of a split file", parts),
              "join them first: llama-gguf-split --merge FIRST-PART OUT.gguf");
  }
  return file;
}

const GgufTensor* GgufFile::find(std::string_view name) const {
  const auto it = std::find_if(header_.tensors.begin(), header_.tensors.end(),
                               [&](const GgufTensor& tensor) { return tensor.name == name; });
  return it == header_.tensors.end() ? nullptr : &*it;
}

std::span<const std::byte> GgufFile::bytes(const GgufTensor& tensor) const {
  return map_.bytes().subspan(tensor.offset, tensor.bytes);
}

std::vector<std::string_view> GgufFile::keys() const {
  std::vector<std::string_view> keys;
  for (const auto& [key, value] : header_.values) keys.push_back(key);
  std::sort(keys.begin(), keys.end());
  return keys;
}

const GgufValue* GgufFile::find_value(std::string_view key) const {
  const auto it = header_.values.find(key);
  return it == header_.values.end() ? nullptr : &it->second;
}

template <class T>
const T* GgufFile::value(std::string_view key, std::string_view expected) const {
  const GgufValue* any = find_value(key);
  if (any == nullptr) return nullptr;
  const T* found = std::get_if<T>(any);
  if (found == nullptr) fail(fmt::format("{} is of another type, expected {}", key, expected));
  return found;
}

std::optional<std::string_view> GgufFile::find_text(std::string_view key) const {
  const auto* found = value<std::string_view>(key, "a string");
  return found == nullptr ? std::nullopt : std::optional(*found);
}

std::optional<int64_t> GgufFile::find_integer(std::string_view key, int64_t min,
                                              int64_t max) const {
  const auto* found = value<int64_t>(key, "a whole number");
  if (found == nullptr) return std::nullopt;
  if (*found < min || *found > max) {
    fail(fmt::format("{} is {}, expected {} to {}", key, *found, min, max));
  }
  return *found;
}

std::optional<double> GgufFile::find_number(std::string_view key) const {
  const auto* found = value<double>(key, "a number");
  if (found == nullptr) return std::nullopt;
  if (!std::isfinite(*found)) fail(fmt::format("{} is {}, expected a finite number", key, *found));
  return *found;
}

std::optional<bool> GgufFile::find_bool(std::string_view key) const {
  const auto* found = value<bool>(key, "true or false");
  return found == nullptr ? std::nullopt : std::optional(*found);
}

const GgufStrings* GgufFile::find_strings(std::string_view key) const {
  return value<GgufStrings>(key, "an array of strings");
}

const GgufIntegers* GgufFile::find_integers(std::string_view key) const {
  return value<GgufIntegers>(key, "an array of whole numbers");
}

const GgufNumbers* GgufFile::find_numbers(std::string_view key) const {
  return value<GgufNumbers>(key, "an array of numbers");
}

std::string_view GgufFile::text(std::string_view key) const {
  const auto found = find_text(key);
  if (!found) fail_absent(key);
  return *found;
}

int64_t GgufFile::integer(std::string_view key, int64_t min, int64_t max) const {
  const auto found = find_integer(key, min, max);
  if (!found) fail_absent(key);
  return *found;
}

double GgufFile::number(std::string_view key) const {
  const auto found = find_number(key);
  if (!found) fail_absent(key);
  return *found;
}

void GgufFile::fail(std::string_view what, std::string_view hint) const {
  throw_error(Code::BadInput, fmt::format("{}: {}", path_.string(), what), std::string(hint));
}

void GgufFile::fail_absent(std::string_view key) const {
  fail(fmt::format("has no value {}", key),
       "the file lacks what describes the model; convert it again with a current llama.cpp");
}

}  // namespace octet
