#pragma once
// How the ranks get their places where the descriptor does not hold them: rank 0 asks for page after page, and passes
// on each rank's part as it comes. Never more than one page is held.
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "client/recovery/group_service.h"

namespace tributary::client {

struct PlacesUser {
  std::function<bool()> wanted;  // false: these trees are given up; nothing more is called or asked for
  std::function<void(std::uint32_t rank, const GroupDescriptor& part)> give;
  std::function<void()> page_came;
  std::function<void(const std::string& why)> failed;  // the last call
};

/// True: the descriptor has lanes, and no places.
[[nodiscard]] bool comes_by_pages(const GroupDescriptor& descriptor) noexcept;
/// `service` and all that `user` uses must be there as long as `user.wanted` says true.
void fetch_places(GroupService& service, std::shared_ptr<const GroupDescriptor> descriptor, std::uint32_t nranks,
                  PlacesUser user);

}  // namespace tributary::client
