#pragma once
// The word MODEL of a command: a folder, a file, or a model of the local Hugging Face cache.
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "cli/flags.h"

namespace octet {

// What --help says of such a word.
inline constexpr std::string_view kModelHelp =
    "folder of a Hugging Face checkpoint, one .safetensors file, or ORG/NAME[@REVISION] of the "
    "local Hugging Face cache";

// --revision.
Flag revision_flag();

// Where the Hugging Face cache is, by HF_HUB_CACHE, HUGGINGFACE_HUB_CACHE, HF_HOME, XDG_CACHE_HOME
// and HOME, the first that is set; empty when none is.
std::vector<std::filesystem::path> hub_cache_roots();

// The folder or file that the positional `name` means; --revision counts where the command has it.
// Throws BadInput for a model of the cache that is not there.
std::string model_path(const ParsedArgs& args, std::string_view name = "model");

}  // namespace octet
