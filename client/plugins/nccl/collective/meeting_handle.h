#pragma once
// The handle that CollNet's listen() writes and NCCL carries to all ranks: the id of a group, or a mark that says that
// there can be no group. All ranks get all handles, so all ranks decide in the same way without a further message.
#include <cstring>
#include <span>

#include "client/plugins/nccl/abi/base.h"
#include "tributary/tributary.h"

namespace tributary::nccl {

enum class Offer : std::uint8_t {
  group,       // the handle holds an id
  no_service,  // the rank knows of no manager that answers
  no_id,       // the rank cannot take part in any group
};

class MeetingHandle {
 public:
  static void write(void* to, const tributary_unique_id& id) {
    std::memset(to, 0, abi::kHandleBytes);
    std::memcpy(to, &id, sizeof id);
  }
  static void write(void* to, Offer refusal) {
    std::memset(to, 0, abi::kHandleBytes);
    std::memcpy(to, &kMagic, sizeof kMagic);
    std::memcpy(static_cast<std::byte*>(to) + sizeof kMagic, &refusal, sizeof refusal);
  }
  /// Reads a handle. A handle that no listen() has written counts as an id; libtributary then refuses this id.
  [[nodiscard]] static Offer read(const void* from) {
    std::uint64_t magic = 0;
    Offer offer{};
    std::memcpy(&magic, from, sizeof magic);
    if (magic != kMagic) return Offer::group;
    std::memcpy(&offer, static_cast<const std::byte*>(from) + sizeof magic, sizeof offer);
    return offer == Offer::no_service ? Offer::no_service : Offer::no_id;
  }
  /// Returns the first rank whose handle says that there can be no group, or -1. The group uses rank 0's id, and only
  /// rank 0 asks the manager for trees. So it does not matter whether other ranks reach a manager.
  [[nodiscard]] static int first_refusal(std::span<void* const> handles) {
    for (std::size_t rank = 0; rank < handles.size(); ++rank) {
      const Offer offer = read(handles[rank]);
      if (offer == Offer::no_id || (offer == Offer::no_service && rank == 0)) return static_cast<int>(rank);
    }
    return -1;
  }

 private:
  static constexpr std::uint64_t kMagic = 0x006f6e2d74627274;  // "trbt-no"
  static_assert(sizeof(tributary_unique_id) <= abi::kHandleBytes);
};

}  // namespace tributary::nccl
