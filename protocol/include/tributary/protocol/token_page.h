#pragma once
// A page of places and tokens for some of a group's ranks. A large group needs many pages: rank 0 asks for one page
// after the other and sends each rank its part, so no process ever has all tokens.
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "tributary/protocol/descriptor.h"
#include "tributary/protocol/error.h"

namespace tributary {

/// The most ranks of a group that gets its places in the descriptor itself; a larger group gets them in pages.
inline constexpr std::uint32_t kPlacesInDescriptorMax = 64;
inline constexpr std::uint32_t kTokenPageRanksMax = 1024;

struct TokenPage {
  std::uint64_t group = 0;
  std::uint32_t epoch = 0;
  std::uint32_t first_rank = 0;
  std::int64_t expires_at = 0;                // end of these tokens, in seconds since 1970-01-01 UTC
  std::vector<std::vector<LaneEntry>> lanes;  // by lane: the entries of ranks first_rank, first_rank + 1, ...

  /// Returns the part for `rank`, which is on this page: `descriptor`, which has no entries, with the rank's entries.
  [[nodiscard]] GroupDescriptor for_rank(const GroupDescriptor& descriptor, std::uint32_t rank) const;
};

/// Writes a page. The JSON has each leaf, with the tokens for its parents, once in each lane, for all ranks below it.
[[nodiscard]] nlohmann::json to_json(const TokenPage& page);
/// Reads a page, whose lanes must have equally many ranks. Errc::corrupt names the member that is missing or wrong.
[[nodiscard]] Result<TokenPage> token_page_from_json(const nlohmann::json& json);

}  // namespace tributary
