#pragma once
// Fetches the ranks' places if the descriptor does not hold them: rank 0 asks for page after page, and passes on each
// rank's part as it comes. It never holds more than one page.
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "client/recovery/group_service.h"

namespace tributary::client {

struct PlacesUser {
  std::function<bool()> wanted;  // false: these trees were given up, and nothing more is called or asked for
  std::function<void(std::uint32_t rank, const GroupDescriptor& part)> give;
  std::function<void()> page_came;
  std::function<void(const std::string& why)> failed;  // called last, if this fails
};

/// True if the descriptor has lanes but no places.
[[nodiscard]] bool comes_by_pages(const GroupDescriptor& descriptor) noexcept;
/// `service` and everything that `user` uses must live as long as `user.wanted` returns true.
void fetch_places(GroupService& service, std::shared_ptr<const GroupDescriptor> descriptor, std::uint32_t nranks,
                  PlacesUser user);

}  // namespace tributary::client
