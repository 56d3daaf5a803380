#pragma once
// Models in the local cache of the Hugging Face hub, found without a network.
// Layout (huggingface_hub, "Understand caching"): models--org--name holds refs/REVISION, a file
// with a commit, and snapshots/COMMIT/FILE, links into blobs/. Unfinished downloads are
// blobs/*.incomplete.
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"

namespace octet {

// A model of the hub as users name it.
struct HubName {
  std::string repo;                     // "org/name"
  std::optional<std::string> revision;  // a branch, a tag, "refs/pr/1" or a commit; nothing: main
  bool operator==(const HubName&) const = default;
};

// The parts of "org/name" or "org/name@revision"; nothing for any other text, among them every one
// that could lead out of the cache.
std::optional<HubName> parse_hub_name(std::string_view text);

// The snapshot folder of `name` in the first of `roots` that has its repository. Throws BadInput
// naming what is there instead, and the command that fetches the model.
std::filesystem::path find_snapshot(const HubName& name,
                                    std::span<const std::filesystem::path> roots);

// The folder or file that a user means by `text`: what lies there on disk, else a snapshot of
// `roots`, else `text` itself, which opening will refuse. `revision` (of --revision) is for hub
// names only. Throws BadInput as find_snapshot, for a revision that a name cannot have, and for one
// that has no use.
std::filesystem::path resolve_model(std::string_view text,
                                    const std::optional<std::string>& revision,
                                    std::span<const std::filesystem::path> roots);

// Where a snapshot folder comes from.
struct HubOrigin {
  std::string repo;                  // "org/name"
  std::string commit;                // name of the snapshot
  std::filesystem::path repository;  // models--org--name
};

// The origin of `dir` when its path is that of a snapshot.
std::optional<HubOrigin> hub_origin(const std::filesystem::path& dir);

// "hf download org/name FILES --revision COMMIT": fetches what a snapshot lacks.
std::string download_command(std::string_view repo, std::span<const std::string> files,
                             std::string_view revision);

// What a snapshot that lacks `files` is told: the command, and the downloads that were not
// finished.
std::string fetch_hint(const HubOrigin& origin, std::span<const std::string> files);

// What to do about a file that is damaged: the command that fetches it anew where it lies in a
// snapshot, else `otherwise`.
std::string refetch_hint(const std::filesystem::path& file, std::string_view otherwise = {});

// An error of reading `files` in `dir`: when its message names some of them and `dir` is a
// snapshot, its hint says how to fetch those again.
Error with_refetch(const Error& error, const std::filesystem::path& dir,
                   std::span<const std::string> files);

// Throws BadInput with the command that fetches `file` when it lies in a snapshot and is not there,
// or its blob is not.
void check_fetched(const std::filesystem::path& file);

// How a model is called in messages and plans: "org/name" for a snapshot, else the folder's name.
std::string model_name(const std::filesystem::path& dir);

}  // namespace octet
