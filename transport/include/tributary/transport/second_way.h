#pragma once
// Interface of transports that can lose their network device while the host and its network live on.
#include <cstdint>
#include <string>

#include "tributary/transport/channel.h"

namespace tributary::transport {

/// An interface that a transport may implement besides Transport. The transport itself is the first way; the second way
/// reaches the same hosts, more slowly and without the first way's devices.
class HasSecondWay {
 public:
  virtual ~HasSecondWay() = default;
  /// The second way, for listen() and connect(). The first way's poll() runs the callbacks of the second way, on the
  /// same thread; do not call the second way's own poll(). It lives as long as the first way.
  [[nodiscard]] virtual Transport& second_way() noexcept = 0;
  /// On the first way, the on_sent() of a payload of up to this many bytes may come before the other side has taken it;
  /// a break then loses the payload. For a longer payload on_sent() comes only when the other side has the payload.
  /// This holds for channels without Channel::expect() and make_room().
  [[nodiscard]] virtual std::uint32_t sent_early_bytes_max() const noexcept = 0;
  /// Checks that the first way still works from this address of this host, or, if the address is empty, from any
  /// address that connections could use. The error has the reason why not. Asks the system, which takes time.
  [[nodiscard]] virtual Status first_way(const std::string& own_address) const = 0;
};

/// The way that still works when devices are lost: the second way, or `transport` itself if it has only one.
[[nodiscard]] inline Transport& lasting_way(Transport& transport) noexcept {
  auto* const two = dynamic_cast<HasSecondWay*>(&transport);
  return two != nullptr ? two->second_way() : transport;
}

}  // namespace tributary::transport
