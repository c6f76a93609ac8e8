#pragma once
// The ranks of a group, their addresses, and the star of control connections between rank 0 and the others.
//
//   first:  every other rank connects to rank 0, both sides prove themselves, and the rank introduces itself
//   then:   rank 0 has heard all of them and calls all_have_come(); the communicator welcomes them
//   later:  a rank that must connect to a further rank asks rank 0 for its address
#include <memory>
#include <optional>
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

/// Gets the outcome of the meeting, and the control messages that arrive over the star.
class MembershipUser {
 public:
  virtual ~MembershipUser() = default;
  /// On rank 0: every rank has introduced itself.
  virtual void all_have_come() = 0;
  /// Rank 0 has sent this rank a message. The welcome is the first one and comes once.
  virtual void on_word_of_rank_0(const ControlMessage& message) = 0;
  /// On rank 0: a rank has sent a message. Rank 0's messages to itself arrive here, too.
  virtual void on_word_to_rank_0(std::uint32_t from, const ControlMessage& message) = 0;
  /// On rank 0: the connection to a rank has ended after all ranks had met.
  virtual void on_rank_gone(std::uint32_t rank, const std::string& why) = 0;
};

class Membership final : public transport::Acceptor, private ControlLinkUser, private ArrivalUser {
 public:
  Membership(Shared& shared, MembershipUser& user, SecondWayUse& second_way);

  /// Opens the listeners and, on other ranks than rank 0, connects to rank 0.
  [[nodiscard]] Status start();
  /// All ranks have met: hands connections between ranks to `mesh` from now on.
  void use(PeerMesh& mesh);
  void tell_rank_0(ControlMessage message);
  /// On rank 0 alone.
  void tell(std::uint32_t to, const ControlMessage& message);
  void tell_all(const ControlMessage& message);
  /// On rank 0, before all ranks have met: tells the ranks that have come so far.
  void tell_those_here(const ControlMessage& message);
  /// Closes the star after the queued messages are sent.
  void close();
  void tick();
  /// Extends the time limits by `absence`, for which this process was away.
  void excuse(transport::Duration absence) { arrivals_.excuse(absence); }

  /// Reads the members in rank 0's welcome, but keeps the address at which this rank reached rank 0. Throws as
  /// learn_members() does.
  void learn(const nlohmann::json& members);
  [[nodiscard]] Directory& directory() noexcept { return directory_; }
  [[nodiscard]] const Directory& directory() const noexcept { return directory_; }
  /// On rank 0, after all ranks have come: by rank, the token of its host's memory; "" if the rank shares none.
  [[nodiscard]] const std::vector<std::string>& host_tokens() const noexcept { return host_tokens_; }
  /// Returns a text for people that lists the ranks that have not come.
  [[nodiscard]] std::string missing() const;
  /// On rank 0, after all ranks have come: every rank knows amendments of the policy.
  [[nodiscard]] bool all_can_amend() const noexcept { return amending_ == come_; }
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
  transport::Transport& star_;                            // rank 0's star runs over it
  std::unique_ptr<transport::Listener> listener_;         // none where rank 0 uses the listener of the id
  std::unique_ptr<transport::Listener> second_listener_;  // on the second way
  Arrivals arrivals_;
  std::vector<std::unique_ptr<ControlLink>> links_;      // rank 0: by rank, [0] empty. else: one, to rank 0
  std::vector<std::unique_ptr<ControlLink>> discarded_;  // may be in a callback until the next tick
  Directory directory_;
  std::vector<std::string> host_tokens_;  // rank 0
  std::uint32_t come_ = 0;                // on rank 0: how many others have introduced themselves
  std::uint32_t amending_ = 0;            // on rank 0: how many of them know amendments of the policy
  Retry reconnect_{std::chrono::milliseconds(50), std::chrono::seconds(1)};  // to rank 0, until all have met
  PeerMesh* mesh_ = nullptr;                                                 // once all have met
};

/// The token of this host's memory; "" if the settings let this rank share none.
[[nodiscard]] std::string host_token_of(const CommunicatorSettings& settings);

}  // namespace tributary::client
