#pragma once
// Answers one LaneMeter of another host, for the time of one measurement, as an aggregator answers its only child.
// Strangers share a waiting room of a few places, and get no answer.
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

/// The bytes with which a meter proves itself to an echo. They are valid for one connection.
using EchoProof = Digest;

class Echo final : public transport::Acceptor {
 public:
  /// Length of the longest message that an echo sends back.
  static constexpr std::uint32_t kAnswerBytesMax = 4096;

  Echo(transport::Transport& transport, std::uint32_t segment_bytes);
  ~Echo() override;
  /// Serves the first connection that shows this proof within `arrival_limit`, until it ends or `limit` has passed.
  /// Returns whether such a connection came.
  bool serve(const EchoProof& proof, transport::Duration arrival_limit, transport::Duration limit);

  transport::ChannelHandler* on_accept(std::unique_ptr<transport::Channel> channel) override;

 private:
  class Guest;
  [[nodiscard]] std::int64_t now_ns() const;
  /// Returns whether the echo serves this guest from now on.
  bool admit(Guest& guest);
  void leaves(Guest& guest);

  transport::Transport& transport_;
  std::vector<std::byte> segment_;  // receives contributions; nobody reads them
  EchoProof proof_{};
  bool waits_ = false;  // the echo waits for the connection that shows proof_
  bool came_ = false;   // this connection has come
  Guest* served_ = nullptr;
  WaitingRoom room_;
  WaitingRoom::Id next_ = 0;
  std::map<WaitingRoom::Id, std::unique_ptr<Guest>> guests_;
  std::vector<WaitingRoom::Id> gone_;
};

}  // namespace tributary::cli::meter
