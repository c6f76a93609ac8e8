#pragma once
// A reliable queue pair of a connection, and the work that waits to be handed to it: lists of requests, one doorbell
// each, by the extended posting calls (ibv_wr_*) where the device's library has them.
//
// A connection's first queue pair is the connection manager's. Further ones go the same way: their path is what the
// connection manager says of the first, their numbers stand in the greetings.
#include <cstdint>
#include <string>
#include <vector>

#include "tributary/protocol/error.h"
#include "verbs/resources.h"
#include "verbs/send_list.h"

namespace tributary::transport::verbs {

class QueuePair {
 public:
  struct Wanted {
    ibv_pd* domain = nullptr;
    ibv_cq* completions = nullptr;
    std::uint32_t sends = 0;
    std::uint32_t receives = 0;
    std::uint32_t inline_bytes = 0;
    bool extended = true;          // by ibv_wr_*, if the library has them
    bool extended_gathers = true;  // lists that gather, too
  };
  QueuePair() = default;
  ~QueuePair() { destroy(); }
  QueuePair(QueuePair&& other) noexcept;
  QueuePair& operator=(QueuePair&&) = delete;

  /// The id's; receives can be posted. The id outlives it.
  [[nodiscard]] Status make_first(rdma_cm_id& id, const Wanted& wanted);
  /// Another one beside it, on the same device.
  [[nodiscard]] Status make_further(const Wanted& wanted);
  /// A further one can have receives posted; then it receives from, and sends to, the peer's queue pair with this
  /// number. The id is connected, or about to be accepted.
  [[nodiscard]] Status prepare(rdma_cm_id& id);
  struct Peer {
    std::uint32_t number = 0;
    std::uint32_t its_first_packet = 0;
    std::uint32_t our_first_packet = 0;
    std::uint8_t retries = 0;
    std::uint8_t receive_retries = 0;
  };
  [[nodiscard]] Status connect(rdma_cm_id& id, const Peer& peer);
  /// Nothing is received or sent any more, but what hangs on it can still be given back. A first one's is
  /// rdma_disconnect()'s.
  void stop() noexcept;
  void destroy() noexcept;

  [[nodiscard]] explicit operator bool() const noexcept { return pair_ != nullptr; }
  [[nodiscard]] ibv_qp* get() const noexcept { return pair_; }
  [[nodiscard]] std::uint32_t inline_bytes() const noexcept { return inline_bytes_; }
  [[nodiscard]] bool extended() const noexcept { return extended_ != nullptr; }

  /// Requests that wait for the others of this turn.
  SendList list;
  /// Hands them to the device, and forgets them, whatever comes of it: errno's value, or 0.
  [[nodiscard]] int post() noexcept;

  // ---- the connection's accounts
  std::uint32_t index = 0;   // among its queue pairs
  std::uint32_t posted = 0;  // work requests, in list or on the send queue
  std::uint32_t retired = 0;
  std::uint32_t since_signal = 0;
  bool tells_end = false;                 // the last of list is to be signalled
  std::vector<std::uint32_t> to_receive;  // receives to be posted anew

 private:
  [[nodiscard]] static ibv_qp_init_attr_ex attributes(const Wanted& wanted) noexcept;
  template <class Make>
  [[nodiscard]] Status make(const Wanted& wanted, Make make);
  [[nodiscard]] int post_extended() noexcept;

  rdma_cm_id* id_ = nullptr;  // of a first one
  ibv_qp* pair_ = nullptr;
  ibv_qp_ex* extended_ = nullptr;
  bool extended_gathers_ = true;
  std::uint32_t inline_bytes_ = 0;
};

}  // namespace tributary::transport::verbs
