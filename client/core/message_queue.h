#pragma once
// send and recv: messages between two ranks, matched in the order of each pair's calls, cut into frames of one piece.
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <vector>

#include "client/collectives/fallback/peer_mesh.h"

namespace tributary::client {

struct Message {
  bool sends = false;
  const std::byte* send = nullptr;  // the one that `sends` says; may be null where count is 0
  std::byte* recv = nullptr;
  std::uint64_t count = 0;
  DType dtype = DType::uint8;
  std::function<void(const Status&)> on_done;
  transport::TimePoint called_at{};
};

class MessageQueue {
 public:
  explicit MessageQueue(std::uint32_t rank) : rank_(rank) {}
  void use(PeerMesh& mesh) { mesh_ = &mesh; }
  void send(std::uint32_t peer, Message message);
  void receive(std::uint32_t peer, Message message);
  void sent(std::uint32_t peer, std::uint64_t cookie);
  void received(std::uint32_t peer, const PostedReceive& receive);
  void fail_all(const Error& error);
  [[nodiscard]] bool idle() const noexcept { return active_.empty() && own_sends_.empty() && own_receives_.empty(); }
  /// "send of 10 float32 to rank 3", when one is older than `before`; else empty.
  [[nodiscard]] std::string overdue(transport::TimePoint before) const;

 private:
  struct Active {
    Message message;
    std::uint32_t peer = 0;
    std::uint64_t frames_left = 0;
  };
  void begin(std::uint32_t peer, Message message, std::uint64_t number);
  void match_own();
  void finish_frame(std::uint64_t cookie);

  const std::uint32_t rank_;
  PeerMesh* mesh_ = nullptr;
  std::map<std::uint32_t, std::uint64_t> sends_;  // by peer: numbers of the next
  std::map<std::uint32_t, std::uint64_t> receives_;
  std::map<std::uint64_t, Active> active_;  // by cookie
  std::uint64_t next_cookie_ = 1;
  std::deque<Message> own_sends_, own_receives_;  // to and from this rank itself
};

}  // namespace tributary::client
