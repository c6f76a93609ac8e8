#pragma once
// Answers one LaneMeter of another host, for the time of one measurement, as an aggregator answers its only child. A
// stranger finds a waiting room of a few places, and is told nothing.
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "client/cli/meter/lane_meter.h"
#include "tributary/protocol/link_secret.h"
#include "tributary/protocol/waiting_room.h"
#include "tributary/transport/channel.h"

namespace tributary::cli::meter {

/// The bytes that a meter shows to an echo: good for one connection.
using EchoProof = Digest;

class Echo final : public transport::Acceptor {
 public:
  /// The longest message that goes back.
  static constexpr std::uint32_t kAnswerBytesMax = 4096;

  Echo(transport::Transport& transport, std::uint32_t segment_bytes);
  ~Echo() override;
  /// Serves the first connection that shows this proof within `arrival_limit`, until it ends or `limit` has passed.
  /// Returns whether one came.
  bool serve(const EchoProof& proof, transport::Duration arrival_limit, transport::Duration limit);

  transport::ChannelHandler* on_accept(std::unique_ptr<transport::Channel> channel) override;

 private:
  class Guest;
  [[nodiscard]] std::int64_t now_ns() const;
  /// Returns whether the guest becomes the one that is served.
  bool admit(Guest& guest);
  void leaves(Guest& guest);

  transport::Transport& transport_;
  std::vector<std::byte> segment_;  // where contributions land; nobody reads them
  EchoProof proof_{};
  bool waits_ = false;  // for the connection that shows proof_
  bool came_ = false;   // it has come
  Guest* served_ = nullptr;
  WaitingRoom room_;
  WaitingRoom::Id next_ = 0;
  std::map<WaitingRoom::Id, std::unique_ptr<Guest>> guests_;
  std::vector<WaitingRoom::Id> gone_;
};

}  // namespace tributary::cli::meter
