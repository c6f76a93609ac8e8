#pragma once
// The places of some of a group's ranks. A group of many ranks does not get all tokens in one answer: rank 0 asks for
// page after page and passes each rank's part on, so that nobody ever holds all.
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "tributary/protocol/descriptor.h"
#include "tributary/protocol/error.h"

namespace tributary {

/// Groups of at most so many ranks get their places in the descriptor itself; others by pages.
inline constexpr std::uint32_t kPlacesInDescriptorMax = 64;
inline constexpr std::uint32_t kTokenPageRanksMax = 1024;

struct TokenPage {
  std::uint64_t group = 0;
  std::uint32_t epoch = 0;
  std::uint32_t first_rank = 0;
  std::int64_t expires_at = 0;                // of these tokens; seconds since 1970-01-01 UTC
  std::vector<std::vector<LaneEntry>> lanes;  // by lane: the entries of first_rank, first_rank + 1, ...

  /// The part that `rank` of this page needs: `descriptor`, which has no entries, with its own.
  [[nodiscard]] GroupDescriptor for_rank(const GroupDescriptor& descriptor, std::uint32_t rank) const;
};

/// In JSON a leaf, with its own tokens for its parents, stands once in each lane, however many ranks are below it.
[[nodiscard]] nlohmann::json to_json(const TokenPage& page);
/// Errc::corrupt names the member that is missing or out of bounds. All lanes have the same number of ranks.
[[nodiscard]] Result<TokenPage> token_page_from_json(const nlohmann::json& json);

}  // namespace tributary
