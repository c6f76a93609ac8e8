#pragma once
// Messages whose partner is known, cut into frames of one piece, from the first frame to the last.
#include <cstdint>
#include <map>
#include <string>

#include "client/collectives/fallback/peer_link.h"
#include "client/communicator/message.h"

namespace tributary::client {

class MessagesUnderWay {
 public:
  /// Sends or posts all frames, under the number that both sides give the message.
  void begin(PeerLink& link, std::uint32_t peer, Message message, std::uint64_t number);
  /// Notes that a frame with this cookie was sent or received. Ignores a cookie that belongs to no message, such as 0.
  void frame_done(std::uint64_t cookie);
  void fail_all(const Error& error);
  [[nodiscard]] bool empty() const noexcept { return active_.empty(); }
  /// Describes an unfinished message whose call was before `before`; empty if there is no such message.
  [[nodiscard]] std::string overdue(transport::TimePoint before) const;

 private:
  struct Active {
    Message message;
    std::uint32_t peer = 0;
    std::uint64_t frames_left = 0;
  };

  std::map<std::uint64_t, Active> active_;  // by cookie
  std::uint64_t next_cookie_ = 1;
};

}  // namespace tributary::client
