#pragma once
// JSON values as messages show them.
#include <simdjson.h>

#include <string>
#include <string_view>

namespace octet {

// "an object", "an array", or the value as the file spells it, cut after 60 bytes.
std::string shown_json(simdjson::dom::element value);
std::string shown_json(simdjson::ondemand::value value);

}  // namespace octet
