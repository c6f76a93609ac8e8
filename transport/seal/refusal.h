#pragma once
// The two sides' agreement whether a connection is sealed: the choice of the connecting side, and the reasons of the
// accepting side to refuse. They are the same for packets and for streams.
#include <cstdint>
#include <optional>
#include <string>

#include "tributary/protocol/error.h"
#include "tributary/transport/link_keys.h"

namespace tributary::transport {

/// A listener's reason for a refusal that the client should know.
enum class RefuseReason : std::uint32_t {
  none = 0,  // no listener, or all places are taken
  wants_authentication = 1,
  wants_encryption = 2,
  unknown_secret = 3,  // sealed with a secret that the listener does not know
  never_seals = 4,     // a stream that is sealed, to a listener without keys
  no_key_yet = 5,      // sealed, and the listener waits for its manager's key: ask again
};

/// The reason to refuse a connection of this level; none: it suffices.
[[nodiscard]] RefuseReason reason_to_refuse(PacketSecurity level, PacketSecurity least) noexcept;
/// The reason to refuse a connection for whose link there is no secret.
[[nodiscard]] constexpr RefuseReason reason_of(NoSecret why) noexcept {
  return why == NoSecret::not_yet ? RefuseReason::no_key_yet : RefuseReason::unknown_secret;
}
/// The error of a client that was refused.
[[nodiscard]] Error refused_by(const std::string& peer, RefuseReason reason);

/// The link for which a connection to `peer` is sealed; empty: it is not sealed. Errc::denied: it must be sealed, and
/// no secret is known for it.
[[nodiscard]] Result<std::optional<LinkKeys::Link>> choose_link(const LinkKeys& keys, std::uint64_t group,
                                                                std::uint32_t epoch, std::uint32_t lane,
                                                                const std::string& peer);

}  // namespace tributary::transport
