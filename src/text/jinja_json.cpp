#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "text/jinja_print.h"
#include "text/utf8.h"

namespace octet::jinja {
namespace {

// json.dumps writes floats by repr, but for these three.
std::string json_real(double value) {
  std::string text = real_text(value);
  if (text == "nan") return "NaN";
  if (text == "inf") return "Infinity";
  if (text == "-inf") return "-Infinity";
  return text;
}

void append_json_text(TextBuilder& out, std::string_view text, bool ensure_ascii) {
  out += '"';
  size_t plain = 0;  // start of the run that needs no escape
  const auto flush = [&](size_t end) { out += text.substr(plain, end - plain); };
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = code_point_at(text, at);
    const uint32_t c = point.value;
    const bool escaped = c == '"' || c == '\\' || c < 0x20 || (ensure_ascii && c > 0x7E);
    if (escaped) {
      flush(at);
      plain = at + point.bytes;
      switch (c) {
        case '"':
          out += "\\\"";
          break;
        case '\\':
          out += "\\\\";
          break;
        case '\n':
          out += "\\n";
          break;
        case '\r':
          out += "\\r";
          break;
        case '\t':
          out += "\\t";
          break;
        case '\b':
          out += "\\b";
          break;
        case '\f':
          out += "\\f";
          break;
        default:
          if (c < 0x10000) {
            out += fmt::format("\\u{:04x}", c);
          } else {
            const uint32_t rest = c - 0x10000;
            out +=
                fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + (rest >> 10), 0xDC00 + (rest & 0x3FF));
          }
      }
    }
    at += point.bytes;
  }
  flush(text.size());
  out += '"';
}

// json.dumps turns keys that are not strings into strings.
std::string json_key(const Value& key) {
  if (key.is_text()) return key.bytes();
  if (key.is_boolean()) return key.get<bool>() ? "true" : "false";
  if (key.is_integer()) return fmt::format("{}", key.get<int64_t>());
  if (key.is_real()) return json_real(key.get<double>());
  if (key.is_none()) return "null";
  fail(fmt::format("keys must be str, int, float, bool or None, not {}", key.type_name()));
}

class JsonWriter {
 public:
  JsonWriter(TextBuilder& out, const JsonStyle& style) : out_(out), style_(style) {}

  void write(const Value& value, uint64_t level) {
    out_.budget().step();
    if (value.is_text()) {
      append_json_text(out_, value.bytes(), style_.ensure_ascii);
    } else if (value.is_none()) {
      out_ += "null";
    } else if (value.is_boolean()) {
      out_ += value.get<bool>() ? "true" : "false";
    } else if (value.is_integer()) {
      out_ += fmt::format("{}", value.get<int64_t>());
    } else if (value.is_real()) {
      out_ += json_real(value.get<double>());
    } else if (value.is_sequence(SequenceKind::List) || value.is_sequence(SequenceKind::Tuple)) {
      write_list(value.items().items, level);
    } else if (value.is_dict()) {
      write_dict(value.dict(), level);
    } else {
      fail(fmt::format("Object of type {} is not JSON serializable", value.type_name()));
    }
  }

 private:
  void new_line(uint64_t level) {
    if (!style_.indent) return;
    out_ += '\n';
    out_.repeat(*style_.indent, level);
  }

  void write_list(const ValueList& items, uint64_t level) {
    if (items.empty()) {
      out_ += "[]";
      return;
    }
    out_ += '[';
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) out_ += style_.item_separator;
      new_line(level + 1);
      write(items[i], level + 1);
    }
    new_line(level);
    out_ += ']';
  }

  void write_dict(const Dict& dict, uint64_t level) {
    if (dict.entries.empty()) {
      out_ += "{}";
      return;
    }
    std::vector<const std::pair<Value, Value>*> entries;
    for (const auto& entry : dict.entries) entries.push_back(&entry);
    if (style_.sort_keys) {
      std::stable_sort(entries.begin(), entries.end(), [&](const auto* a, const auto* b) {
        return compare(a->first, b->first, "<", out_.budget()).value_or(0) < 0;
      });
    }
    out_ += '{';
    bool first = true;
    for (const auto* entry : entries) {
      if (!first) out_ += style_.item_separator;
      first = false;
      new_line(level + 1);
      append_json_text(out_, json_key(entry->first), style_.ensure_ascii);
      out_ += style_.key_separator;
      write(entry->second, level + 1);
    }
    new_line(level);
    out_ += '}';
  }

  TextBuilder& out_;
  const JsonStyle& style_;
};

Value text_from_json(const std::string& text, const std::string& where) {
  if (const auto bad = find_invalid_utf8(text)) {
    fail(fmt::format("{}: the text is not UTF-8: byte {} of {} starts no character",
                     where.empty() ? "/" : where, *bad, text.size()));
  }
  return Value::text(text);
}

Value convert(const nlohmann::ordered_json& json, const std::string& where, int depth,
              Budget& budget) {
  if (depth > kMaxValueDepth) {
    fail(fmt::format("{}: the input nests deeper than {} levels", where, kMaxValueDepth));
  }
  if (json.is_string()) return text_from_json(json.get_ref<const std::string&>(), where);
  if (json.is_boolean()) return Value::boolean(json.get<bool>());
  if (json.is_number_unsigned()) {
    const auto number = json.get<uint64_t>();
    if (number > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      fail(fmt::format("{}: {} is above {}, the largest integer a template can hold", where, number,
                       std::numeric_limits<int64_t>::max()));
    }
    return Value::integer(static_cast<int64_t>(number));
  }
  if (json.is_number_integer()) return Value::integer(json.get<int64_t>());
  if (json.is_number_float()) return Value::real(json.get<double>());
  if (json.is_array()) {
    ValueList items;
    items.reserve(json.size());
    for (const auto& item : json) {
      items.push_back(convert(item, fmt::format("{}/{}", where, items.size()), depth + 1, budget));
    }
    return Value::list(std::move(items));
  }
  if (json.is_object()) {
    DictBuilder dict(budget);
    for (const auto& [key, value] : json.items()) {
      dict.set(text_from_json(key, where), convert(value, where + "/" + key, depth + 1, budget));
    }
    return dict.take();
  }
  if (json.is_null()) return Value::none();
  fail(fmt::format("{}: {} has no place in a template's input", where, json.type_name()));
}

}  // namespace

void append_json(TextBuilder& out, const Value& value, const JsonStyle& style) {
  JsonWriter(out, style).write(value, 0);
}

Value from_json(const nlohmann::ordered_json& json, const std::string& where, Budget& budget) {
  return convert(json, where, 1, budget);
}

}  // namespace octet::jinja
