#include "tree-manager/planner/addresses.h"

namespace tributary::manager {
namespace {

/// Returns the first good address, beginning with the lane's own, in turn; nullptr if none is good.
template <class Good>
const Endpoint* first_from(const DataAddresses& addresses, std::uint32_t lane, const Good& good) noexcept {
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    const std::size_t which = (lane + i) % addresses.size();
    if (good(which)) return &addresses[which].at;
  }
  return nullptr;
}

}  // namespace

std::string to_string(const DataAddresses& addresses) {
  std::string text;
  for (const DataAddress& address : addresses) {
    text += (text.empty() ? "" : ", ") + to_string(address.at) + (address.live ? "" : " (down)");
  }
  return text;
}

const Endpoint* address_for_lane(const DataAddresses& addresses, std::uint32_t lane) noexcept {
  return first_from(addresses, lane, [&](std::size_t which) { return addresses[which].live; });
}

const Endpoint* address_between(const DataAddresses& child, const DataAddresses& parent, std::uint32_t lane) noexcept {
  if (child.size() == parent.size()) {
    const auto pair_lives = [&](std::size_t which) { return child[which].live && parent[which].live; };
    if (const Endpoint* const found = first_from(parent, lane, pair_lives)) return found;
  }
  return address_for_lane(parent, lane);
}

}  // namespace tributary::manager
