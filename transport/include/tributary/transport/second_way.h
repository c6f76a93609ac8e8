#pragma once
// Transports that can lose what they stand on, a network device, while hosts and network live on.
#include <cstdint>
#include <string>

#include "tributary/transport/channel.h"

namespace tributary::transport {

/// What a Transport may be, too. It is the first way; the second leads to the same hosts, slower, without its devices.
class HasSecondWay {
 public:
  virtual ~HasSecondWay() = default;
  /// Listens and connects. The first way's poll() runs its callbacks, on the same thread; its own is not to be called.
  /// Lives as long as the first.
  [[nodiscard]] virtual Transport& second_way() noexcept = 0;
  /// On the first way: the on_sent() of payloads up to so long may come before the other side has taken them, and a
  /// break then loses them. Of longer ones it comes when nothing can keep the other side's on_frame() from coming any
  /// more; on channels for which neither Channel::expect() nor make_room() is called.
  [[nodiscard]] virtual std::uint32_t sent_early_bytes_max() const noexcept = 0;
  /// Whether the first way is still there at this address of this host's, or, if it is empty, by any way that
  /// connections could leave. If not, why not. Takes a while.
  [[nodiscard]] virtual Status first_way(const std::string& own_address) const = 0;
};

/// What stays whatever becomes of devices: the second way, where there is one.
[[nodiscard]] inline Transport& lasting_way(Transport& transport) noexcept {
  auto* const two = dynamic_cast<HasSecondWay*>(&transport);
  return two != nullptr ? two->second_way() : transport;
}

}  // namespace tributary::transport
