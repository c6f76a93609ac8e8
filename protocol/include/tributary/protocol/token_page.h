#pragma once
// The places and tokens of some of a group's ranks. The manager does not send all tokens of a large group in one
// answer: rank 0 asks for page after page and passes each rank's part on, so that no process ever holds all tokens.
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "tributary/protocol/descriptor.h"
#include "tributary/protocol/error.h"

namespace tributary {

/// A group of at most this many ranks gets its places in the descriptor itself, a larger one in pages.
inline constexpr std::uint32_t kPlacesInDescriptorMax = 64;
inline constexpr std::uint32_t kTokenPageRanksMax = 1024;

struct TokenPage {
  std::uint64_t group = 0;
  std::uint32_t epoch = 0;
  std::uint32_t first_rank = 0;
  std::int64_t expires_at = 0;                // when these tokens expire; seconds since 1970-01-01 UTC
  std::vector<std::vector<LaneEntry>> lanes;  // by lane: the entries of first_rank, first_rank + 1, ...

  /// Returns the part that `rank` of this page needs: `descriptor`, which has no entries, with the rank's entries.
  [[nodiscard]] GroupDescriptor for_rank(const GroupDescriptor& descriptor, std::uint32_t rank) const;
};

/// JSON names each leaf, with the tokens for its parents, once in each lane, however many ranks are below it.
[[nodiscard]] nlohmann::json to_json(const TokenPage& page);
/// Errc::corrupt names the member that is missing or out of bounds. All lanes have the same number of ranks.
[[nodiscard]] Result<TokenPage> token_page_from_json(const nlohmann::json& json);

}  // namespace tributary
