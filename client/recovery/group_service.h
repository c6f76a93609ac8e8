#pragma once
// The manager's service for rank 0: it is about trees, and carries no data.
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tributary/protocol/descriptor.h"
#include "tributary/protocol/error.h"
#include "tributary/protocol/late_rank.h"
#include "tributary/protocol/sum_form.h"
#include "tributary/protocol/token_page.h"

namespace tributary::client {

struct GroupRequest {
  std::string job;
  std::string user{};              // user of the ranks' processes; empty: not known
  std::uint32_t processes = 0;     // number of ranks that the members represent, with themselves; 0: only themselves
  std::vector<std::string> hosts;  // by rank: place in the topology
  std::uint32_t lanes = 1;
  std::string priority{};  // class of the trees; empty: normal
  FormSenders form_senders = FormSenders::nobody;
  std::uint64_t link_rate = 0;  // rate of the slowest rank's link, in bits per second; 0: not known
  std::string rail{};           // rail on which all ranks have their device; empty: none, or different rails
  PacketSecurity packet_security = PacketSecurity::off;
  ExchangePublicKey exchange_key{};  // the group's key; zeros: places need no secrets
  std::uint64_t attempt = 0;         // number of the request; it stays if rank 0 repeats a request without an answer
};

/// The counts of the group's traffic on rank 0 since the start.
struct GroupTraffic {
  std::uint64_t operations = 0;
  std::uint64_t bytes_in_network = 0;
  std::uint64_t bytes_between_ranks = 0;
  std::uint64_t bytes_in_shared_memory = 0;
};

struct GroupLease {
  bool better_trees = false;     // the manager has better trees: call rebuild() with `in_use`
  bool leave = false;            // the manager takes the trees away
  std::string why;               // the reason, for people
  std::uint32_t epoch = 0;       // the newest epoch of the group's trees
  PathRates rates{};             // the rates of these trees beside all present groups; zeros: not known
  std::vector<LateRank> late{};  // ranks for which the others wait, the greatest lag first
};

/// The interface to the manager. Each call calls `answer` later, once, on the communicator's thread; never after the
/// destructor.
class GroupService {
 public:
  using DescriptorAnswer = std::function<void(Result<GroupDescriptor>)>;
  using PageAnswer = std::function<void(Result<TokenPage>)>;
  virtual ~GroupService() = default;
  /// Asks for trees. If the descriptor has lanes without entries, call places() for the group's places.
  virtual void request(const GroupRequest& request, DescriptorAnswer answer) = 0;
  /// Asks for the places of `count` ranks from `first` on in the trees of this epoch; `count` is at most
  /// kTokenPageRanksMax.
  virtual void places(std::uint64_t group, std::uint32_t epoch, std::uint32_t first, std::uint32_t count,
                      PageAnswer answer) = 0;
  /// Asks for trees with an epoch after `epoch`, without the aggregators that failed. `in_use`: the present trees work,
  /// and the group uses them until it has moved; an empty descriptor then means that there are no better trees.
  virtual void rebuild(std::uint64_t group, std::uint32_t epoch, const std::vector<std::string>& failed, bool in_use,
                       DescriptorAnswer answer) = 0;
  /// Keeps the reservation, and reports the group's traffic. Errc::bad_argument: the manager has forgotten the group.
  virtual void renew(std::uint64_t group, const GroupTraffic& traffic,
                     std::function<void(Result<GroupLease>)> answer) = 0;
  /// Gives the group back, and names the lost aggregators that no request has reported. The manager does not answer.
  virtual void release(std::uint64_t group, const std::vector<std::string>& lost) = 0;
};

}  // namespace tributary::client
