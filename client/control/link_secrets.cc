#include "client/control/link_secrets.h"

#include <utility>

#include "tributary/protocol/credential.h"
#include "tributary/protocol/reason.h"

namespace tributary::client {

Status LinkSecrets::take(const GroupDescriptor& d) {
  const PacketSecurity least = keys_ != nullptr ? keys_->least() : PacketSecurity::off;
  for (const LinkName& name : std::exchange(taken_, {})) keys_->remove(name);
  if (d.security < least || (d.security != PacketSecurity::off && keys_ == nullptr)) {
    return fail(Errc::denied, Reason::unequal_security,
                "the trees have security '" + std::string(to_string(d.security)) + "', this rank '" +
                    std::string(to_string(least)) + "': set the same TRIBUTARY_SECURITY on every rank");
  }
  if (keys_ == nullptr || d.exchange_key == ExchangePublicKey{}) return {};
  const auto exchange = exchange_key_of_group(secret_);
  if (!exchange) return std::unexpected(exchange.error());
  const auto shared = exchange->agree(d.exchange_key);
  if (!shared) return std::unexpected(shared.error());
  for (const LaneDescriptor& lane : d.lanes) {
    const auto claims = read_claims(lane.entries[0].tokens.front());
    if (!claims) return std::unexpected(claims.error());
    if (claims->masked_secret == LinkSecret{}) continue;
    const LinkName name{claims->group, claims->epoch, claims->lane, claims->child};
    keys_->add(name, masked(claims->masked_secret, *shared, name, claims->aggregator), d.security);
    taken_.push_back(name);
  }
  return {};
}

}  // namespace tributary::client
