#pragma once
// Fetches the ranks' places if the descriptor does not contain them: rank 0 asks for one page after the other, and
// sends each rank its part when the page comes. It never holds more than one page.
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "client/recovery/group_service.h"

namespace tributary::client {

struct PlacesUser {
  std::function<bool()> wanted;  // false: rank 0 has given up these trees; the fetch ends without a further call
  std::function<void(std::uint32_t rank, const GroupDescriptor& part)> give;
  std::function<void()> page_came;
  std::function<void(const std::string& why)> failed;  // the last call, if the fetch fails
};

/// Returns whether the descriptor has lanes but no places.
[[nodiscard]] bool comes_by_pages(const GroupDescriptor& descriptor) noexcept;
/// Fetches all pages. `service` and all objects that `user` uses must live as long as `user.wanted` returns true.
void fetch_places(GroupService& service, std::shared_ptr<const GroupDescriptor> descriptor, std::uint32_t nranks,
                  PlacesUser user);

}  // namespace tributary::client
