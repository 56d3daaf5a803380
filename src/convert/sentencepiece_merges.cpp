#include <algorithm>
#include <tuple>
#include <unordered_map>

#include "base/error.h"
#include "convert/gguf_tokenizer.h"

namespace octet {
namespace {

// One way to make a piece; ranked by score, then by characters of its parts, as the reference does.
struct Merge {
  double score = 0;
  int32_t left = 0, right = 0;  // ids
  uint32_t left_length = 0, right_length = 0;
};

bool begins_character(char c) {
  return (static_cast<uint8_t>(c) & 0xC0) != 0x80;
}

// Every cut of `piece` into two known pieces, by the ids of the parts.
void add_merges(std::string_view piece, double score,
                const std::unordered_map<std::string_view, int32_t>& ids,
                std::vector<Merge>& merges) {
  const size_t first = merges.size();
  const auto length =
      static_cast<uint32_t>(std::count_if(piece.begin(), piece.end(), begins_character));
  uint32_t left_length = 1;
  for (size_t at = 1; at < piece.size(); ++at) {
    if (!begins_character(piece[at])) continue;
    const auto left = ids.find(piece.substr(0, at));
    const auto right = ids.find(piece.substr(at));
    if (left != ids.end() && right != ids.end()) {
      merges.push_back({score, left->second, right->second, left_length, length - left_length});
    }
    ++left_length;
  }
  std::sort(merges.begin() + static_cast<ptrdiff_t>(first), merges.end(),
            [](const Merge& a, const Merge& b) {
              return std::tie(a.left, a.right) < std::tie(b.left, b.right);
            });
}

}  // namespace

std::vector<std::pair<std::string_view, std::string_view>> sentencepiece_merges(
    const std::vector<std::string_view>& pieces, const std::vector<double>& scores) {
  OCTET_CHECK(pieces.size() == scores.size(), "{} pieces, {} scores", pieces.size(), scores.size());
  std::unordered_map<std::string_view, int32_t> ids;
  for (size_t i = 0; i < pieces.size(); ++i) ids.emplace(pieces[i], static_cast<int32_t>(i));
  std::vector<Merge> merges;
  for (size_t i = 0; i < pieces.size(); ++i) add_merges(pieces[i], scores[i], ids, merges);
  std::stable_sort(merges.begin(), merges.end(), [](const Merge& a, const Merge& b) {
    return std::tie(a.score, a.left_length, a.right_length) >
           std::tie(b.score, b.left_length, b.right_length);
  });
  std::vector<std::pair<std::string_view, std::string_view>> pairs;
  pairs.reserve(merges.size());
  for (const Merge& merge : merges) {
    pairs.emplace_back(pieces[static_cast<size_t>(merge.left)],
                       pieces[static_cast<size_t>(merge.right)]);
  }
  return pairs;
}

}  // namespace octet
