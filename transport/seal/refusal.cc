#include "transport/seal/refusal.h"

#include <utility>

namespace tributary::transport {

RefuseReason reason_to_refuse(PacketSecurity level, PacketSecurity least) noexcept {
  if (level >= least) return RefuseReason::none;
  return least == PacketSecurity::encrypt ? RefuseReason::wants_encryption : RefuseReason::wants_authentication;
}

Error refused_by(const std::string& peer, RefuseReason reason) {
  const std::string cannot = "cannot connect to " + peer + ": it ";
  if (reason == RefuseReason::unknown_secret) {
    return {Errc::denied, cannot +
                              "does not know the secret that this connection is sealed with; it may have started again "
                              "since the manager gave it."};
  }
  if (reason == RefuseReason::no_key_yet) {
    return {Errc::denied, cannot +
                              "has not reached its manager yet, so it does not know the secret that this connection "
                              "is sealed with."};
  }
  if (reason == RefuseReason::never_seals) {
    return {Errc::denied, cannot + "has security 'off'; set the same TRIBUTARY_SECURITY on every rank."};
  }
  const bool wants_encryption = reason == RefuseReason::wants_encryption;
  const std::string wanted(to_string(wants_encryption ? PacketSecurity::encrypt : PacketSecurity::authenticate));
  return {Errc::denied, cannot + "takes no connections below security '" + wanted +
                            "'; set TRIBUTARY_SECURITY=" + wanted + " on every rank."};
}

Result<std::optional<LinkKeys::Link>> choose_link(const LinkKeys& keys, std::uint64_t group, std::uint32_t epoch,
                                                  std::uint32_t lane, const std::string& peer) {
  auto link = keys.to_connect(group, epoch, lane);
  if (link && link->link.security >= keys.least() && link->link.security != PacketSecurity::off) return link;
  if (keys.least() == PacketSecurity::off) return std::nullopt;
  return fail(Errc::denied, "cannot connect to " + peer + ": security is set to '" +
                                std::string(to_string(keys.least())) +
                                "' here, and this connection's group has no secret for it.");
}

}  // namespace tributary::transport
