#pragma once
// Which ranks there are, where they are, and the star of control connections between them and rank 0.
//
//   the others: come to rank 0, and both sides prove themselves; each introduces itself
//   rank 0:     has all of them -> all_have_come(); the whole welcomes them
//   later:      a rank asks rank 0 where further ranks are, when it is to connect to them
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

/// The receiver of what comes of meeting, and over the star.
class MembershipUser {
 public:
  virtual ~MembershipUser() = default;
  /// Rank 0: every rank has introduced itself.
  virtual void all_have_come() = 0;
  /// Rank 0's message to this rank. Its welcome comes first, and once.
  virtual void on_word_of_rank_0(const ControlMessage& message) = 0;
  /// Rank 0: a rank's message. Rank 0's own come here, too.
  virtual void on_word_to_rank_0(std::uint32_t from, const ControlMessage& message) = 0;
  /// Rank 0: the connection to a rank has ended after all had met.
  virtual void on_rank_gone(std::uint32_t rank, const std::string& why) = 0;
};

class Membership final : public transport::Acceptor, private ControlLinkUser, private ArrivalUser {
 public:
  Membership(Shared& shared, MembershipUser& user, SecondWayUse& second_way);

  /// Opens the listeners, and goes to meet rank 0.
  [[nodiscard]] Status start();
  /// All ranks are known: takes over the connections between them from now on.
  void use(PeerMesh& mesh);
  void tell_rank_0(ControlMessage message);
  /// Rank 0.
  void tell(std::uint32_t rank, const ControlMessage& message);
  void tell_all(const ControlMessage& message);
  /// Rank 0, before all have met: to those that have come.
  void tell_those_here(const ControlMessage& message);
  /// Closes the star, once what was said is out.
  void close();
  void tick();
  /// This process was away for so long.
  void excuse(transport::Duration absence) { arrivals_.excuse(absence); }

  /// Reads the members of rank 0's welcome, with rank 0 as it is reached from here. Throws as learn_members() does.
  void learn(const nlohmann::json& members);
  [[nodiscard]] Directory& directory() noexcept { return directory_; }
  [[nodiscard]] const Directory& directory() const noexcept { return directory_; }
  /// Rank 0, once all have come: what each rank calls the memory of its host, by rank; "" where it shares none.
  [[nodiscard]] const std::vector<std::string>& host_tokens() const noexcept { return host_tokens_; }
  /// For people: the ranks that have not come.
  [[nodiscard]] std::string missing() const;
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
  void control_closed(std::uint32_t rank, const std::string& why) override;
  void not_rank_0(const std::string& why) override;

  Shared& shared_;
  MembershipUser& user_;
  SecondWayUse& second_way_;
  transport::Transport& star_;                            // where rank 0 is
  std::unique_ptr<transport::Listener> listener_;         // none: rank 0's is the id's
  std::unique_ptr<transport::Listener> second_listener_;  // on the second way
  Arrivals arrivals_;
  std::vector<std::unique_ptr<ControlLink>> links_;      // rank 0: by rank, [0] empty. else: one, to rank 0
  std::vector<std::unique_ptr<ControlLink>> discarded_;  // may be in a callback until the next tick
  Directory directory_;
  std::vector<std::string> host_tokens_;  // rank 0
  std::uint32_t come_ = 0;                // rank 0: others that have introduced themselves
  Retry reconnect_{std::chrono::milliseconds(50), std::chrono::seconds(1)};  // to rank 0, until all have met
  PeerMesh* mesh_ = nullptr;                                                 // once all have met
};

/// This rank's name for the memory of its host; "" where the settings let it share none.
[[nodiscard]] std::string host_token_of(const CommunicatorSettings& settings);

}  // namespace tributary::client
