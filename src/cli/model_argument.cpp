#include "cli/model_argument.h"

#include <cstdlib>
#include <optional>

#include "io/hub_cache.h"

namespace octet {
namespace {

namespace fs = std::filesystem;

// The value of an environment variable that is a path, "~/" in front expanded; nothing when unset
// or empty.
std::optional<fs::path> path_of(const char* variable) {
  const char* value = std::getenv(variable);
  if (value == nullptr || *value == '\0') return std::nullopt;
  const std::string_view text = value;
  const char* home = std::getenv("HOME");
  if (home != nullptr && (text == "~" || text.starts_with("~/"))) {
    return fs::path(std::string(home) + std::string(text.substr(1)));
  }
  return fs::path(text);
}

}  // namespace

Flag revision_flag() {
  return {.name = "revision",
          .kind = FlagKind::Text,
          .metavar = "REVISION",
          .help = "branch, tag or commit of a model of the Hugging Face cache",
          .default_text = "main"};
}

std::vector<fs::path> hub_cache_roots() {
  for (const char* variable : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"}) {
    if (const auto cache = path_of(variable)) return {*cache};
  }
  if (const auto home = path_of("HF_HOME")) return {*home / "hub"};
  if (const auto cache = path_of("XDG_CACHE_HOME")) return {*cache / "huggingface" / "hub"};
  if (const auto home = path_of("HOME")) return {*home / ".cache" / "huggingface" / "hub"};
  return {};
}

std::string model_path(const ParsedArgs& args, std::string_view name) {
  std::optional<std::string> revision;
  for (const Flag& flag : args.spec().flags) {
    if (flag.name == "revision") revision = args.text("revision");
  }
  return resolve_model(*args.argument(name), revision, hub_cache_roots()).string();
}

}  // namespace octet
