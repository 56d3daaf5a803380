#include "io/json_field.h"

#include <nlohmann/json.hpp>

#include <algorithm>

#include "base/error.h"
#include "base/printable.h"

namespace octet {
namespace {

std::string place(const std::string& path) {
  return path.empty() ? "the top level" : path;
}

}  // namespace

std::string shown_value(const nlohmann::json& value) {
  if (value.is_object()) return "an object";
  constexpr size_t kShown = 80;
  std::string text = value.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  if (text.size() > kShown) text = text.substr(0, kShown) + "...";
  return text;
}

void JsonField::fail(std::string_view expected, std::string_view hint) const {
  throw_error(Code::BadInput,
              fmt::format("{} is {}, expected {}", place(path_), shown_value(*value_), expected),
              std::string(hint));
}

std::optional<JsonField> JsonField::find(std::string_view key) const {
  if (!value_->is_object()) fail("an object");
  const auto it = value_->find(key);
  if (it == value_->end() || it->is_null()) return std::nullopt;
  return JsonField(*it, path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key));
}

JsonField JsonField::at(std::string_view key) const {
  if (auto field = find(key)) return *field;
  throw_error(Code::BadInput, fmt::format("{} has no \"{}\"", place(path_), key));
}

JsonField JsonField::object() const {
  if (!value_->is_object()) fail("an object");
  return *this;
}

std::string JsonField::string() const {
  if (!value_->is_string()) fail("a string");
  return value_->get<std::string>();
}

std::string JsonField::word() const {
  std::string text = string();
  std::transform(text.begin(), text.end(), text.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return text;
}

int64_t JsonField::integer() const {
  if (!value_->is_number_integer()) fail("a whole number");
  if (value_->is_number_unsigned() && value_->get<uint64_t>() > uint64_t{INT64_MAX}) {
    fail("a whole number below 2^63");
  }
  return value_->get<int64_t>();
}

bool JsonField::boolean() const {
  if (!value_->is_boolean()) fail("true or false");
  return value_->get<bool>();
}

std::vector<std::string> JsonField::strings() const {
  std::vector<std::string> list;
  for (const JsonField& element : elements()) list.push_back(element.string());
  return list;
}

std::vector<JsonField> JsonField::elements() const {
  if (!value_->is_array()) fail("an array");
  std::vector<JsonField> list;
  list.reserve(value_->size());
  for (size_t i = 0; i < value_->size(); ++i) {
    list.emplace_back((*value_)[i], fmt::format("{}[{}]", path_, i));
  }
  return list;
}

std::vector<std::pair<std::string, JsonField>> JsonField::members() const {
  if (!value_->is_object()) fail("an object");
  std::vector<std::pair<std::string, JsonField>> list;
  for (const auto& [key, value] : value_->items()) {
    list.emplace_back(key, JsonField(value, fmt::format("{}.{}", path_, printable_name(key))));
  }
  return list;
}

bool is_empty_value(const nlohmann::json& value) {
  return value.is_null() || (value.is_structured() && value.empty()) ||
         (value.is_string() && value.get_ref<const std::string&>().empty());
}

}  // namespace octet
