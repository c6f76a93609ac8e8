#pragma once
// The ranks of a group, their addresses, and the star of control connections between rank 0 and the other ranks.
//
//   first:  every other rank connects to rank 0, both sides prove themselves, and the rank introduces itself
//   then:   all ranks have introduced themselves; rank 0 calls all_have_come(), and the communicator welcomes them
//   later:  a rank that must connect to another rank asks rank 0 for the address of that rank
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "client/collectives/fallback/peer_mesh.h"
#include "client/communicator/second_way_use.h"
#include "client/communicator/whole.h"
#include "client/control/arrivals.h"
#include "client/control/control_link.h"
#include "client/control/directory.h"
#include "client/control/retry.h"

namespace tributary::client {

/// The user of a Membership: it gets the outcome of the meeting, and the control messages that arrive over the star.
class MembershipUser {
 public:
  virtual ~MembershipUser() = default;
  /// Called on rank 0 when every rank has introduced itself.
  virtual void all_have_come() = 0;
  /// Called when rank 0 has sent this rank a message. The first message is the welcome, which comes only once.
  virtual void on_word_of_rank_0(const ControlMessage& message) = 0;
  /// Called on rank 0 when a rank has sent a message, also for rank 0's messages to itself.
  virtual void on_word_to_rank_0(std::uint32_t from, const ControlMessage& message) = 0;
  /// Called on rank 0 when the connection to a rank has ended after all ranks had met.
  virtual void on_rank_gone(std::uint32_t rank, const std::string& why) = 0;
};

class Membership final : public transport::Acceptor, private ControlLinkUser, private ArrivalUser {
 public:
  Membership(Shared& shared, MembershipUser& user, SecondWayUse& second_way);

  /// Opens the listeners and, on other ranks than rank 0, connects to rank 0.
  [[nodiscard]] Status start();
  /// Hands connections between ranks to `mesh` from now on: all ranks have met.
  void use(PeerMesh& mesh);
  void tell_rank_0(ControlMessage message);
  /// On rank 0: sends a message to one rank, or to all.
  void tell(std::uint32_t to, const ControlMessage& message);
  void tell_all(const ControlMessage& message);
  /// On rank 0, before all ranks have met: sends a message to the ranks that have come so far.
  void tell_those_here(const ControlMessage& message);
  /// Closes the star after the queued messages are sent.
  void close();
  void tick();
  /// Extends the time limits by `absence`, the time for which this process was away.
  void excuse(transport::Duration absence) { arrivals_.excuse(absence); }

  /// Reads the members in rank 0's welcome, but keeps the address at which this rank reached rank 0. Throws as
  /// learn_members() does.
  void learn(const nlohmann::json& members);
  [[nodiscard]] Directory& directory() noexcept { return directory_; }
  [[nodiscard]] const Directory& directory() const noexcept { return directory_; }
  /// Returns on rank 0, after all ranks have come, the tokens of the ranks' host memory, by rank; "": the rank shares
  /// no memory.
  [[nodiscard]] const std::vector<std::string>& host_tokens() const noexcept { return host_tokens_; }
  /// Returns a text for people that lists the ranks that have not come.
  [[nodiscard]] std::string missing() const;
  /// Returns on rank 0, after all ranks have come, whether every rank understands amendments of the policy.
  [[nodiscard]] bool all_can_amend() const noexcept { return not_amending_.empty(); }
  [[nodiscard]] std::uint64_t strangers_turned_away() const noexcept { return arrivals_.counts().sum(); }

  transport::ChannelHandler* on_accept(std::unique_ptr<transport::Channel> channel) override;

 private:
  [[nodiscard]] Status open_listeners();
  void meet_rank_0();
  void ask_for_members();
  void answer_whereabouts(std::uint32_t from, const std::string& body);
  void on_members(const std::string& body);
  void admit(Arrival& arrival, const std::string& body);

  [[nodiscard]] const Secret& secret() const override { return shared_.settings.id.secret; }
  [[nodiscard]] std::uint32_t rank() const override { return shared_.rank(); }
  [[nodiscard]] bool has_met() const override { return mesh_ != nullptr; }
  void on_hello(Arrival& arrival, const std::string& body) override;
  void on_peer_hello(Arrival& arrival) override;
  [[nodiscard]] std::string introduction() const override;
  void on_control(std::uint32_t from, const ControlMessage& message) override;
  void control_closed(std::uint32_t from, const std::string& why) override;
  void not_rank_0(const std::string& why) override;

  Shared& shared_;
  MembershipUser& user_;
  SecondWayUse& second_way_;
  transport::Transport& star_;                            // the transport of rank 0's star
  std::unique_ptr<transport::Listener> listener_;         // nullptr if rank 0 uses the listener of the unique id
  std::unique_ptr<transport::Listener> second_listener_;  // listener on the second way
  Arrivals arrivals_;
  std::vector<std::unique_ptr<ControlLink>> links_;      // rank 0: by rank, [0] empty; else: only [0], to rank 0
  std::vector<std::unique_ptr<ControlLink>> discarded_;  // links that may be in a callback until the next tick
  Directory directory_;
  std::vector<std::string> host_tokens_;  // on rank 0: by rank
  std::uint32_t come_ = 0;                // on rank 0: how many other ranks have introduced themselves
  std::set<std::uint32_t> not_amending_;  // on rank 0: the ranks that do not understand amendments
  Retry reconnect_{std::chrono::milliseconds(50), std::chrono::seconds(1)};  // waits between tries to connect to rank 0
  PeerMesh* mesh_ = nullptr;                                                 // set once all ranks have met
};

/// Returns the token of this host's memory; "" if the settings let this rank share no memory.
[[nodiscard]] std::string host_token_of(const CommunicatorSettings& settings);

}  // namespace tributary::client
