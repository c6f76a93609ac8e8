#pragma once
// Transports that can lose their network device while the host and its network live on.
#include <cstdint>
#include <string>

#include "tributary/transport/channel.h"

namespace tributary::transport {

/// An interface that a transport may implement, too. The transport itself is the first way; the second way leads to the
/// same hosts, slower, and without the first way's devices.
class HasSecondWay {
 public:
  virtual ~HasSecondWay() = default;
  /// The second way, for listen() and connect(). The first way's poll() runs its callbacks, on the same thread; nobody
  /// may call its own poll(). It lives as long as the first way.
  [[nodiscard]] virtual Transport& second_way() noexcept = 0;
  /// On the first way, the on_sent() of a payload of up to this many bytes may come before the other side has taken it;
  /// a break then loses the payload. For a longer payload on_sent() comes when nothing can prevent the other side's
  /// on_frame() any more. Holds on channels for which neither Channel::expect() nor make_room() is called.
  [[nodiscard]] virtual std::uint32_t sent_early_bytes_max() const noexcept = 0;
  /// Checks that the first way still works from this address of this host, or, if the address is empty, from any
  /// address that connections could leave by. The error says why not. Asks the system, which takes time.
  [[nodiscard]] virtual Status first_way(const std::string& own_address) const = 0;
};

/// The way that still works when devices are lost: the second way, where there is one.
[[nodiscard]] inline Transport& lasting_way(Transport& transport) noexcept {
  auto* const two = dynamic_cast<HasSecondWay*>(&transport);
  return two != nullptr ? two->second_way() : transport;
}

}  // namespace tributary::transport
