#pragma once
// A reliable queue pair of a connection, and the work that waits to be handed to it: lists of requests, one doorbell
// each, by the extended posting calls (ibv_wr_*) where the device's library has them.
//
// The connection manager knows a connection's first queue pair by its number, and says what path the connection has;
// further ones go the same way, their numbers stand in the greetings. iWARP's connection manager makes its queue pair
// itself.
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "transport/verbs/resources.h"
#include "transport/verbs/send_list.h"
#include "tributary/protocol/error.h"
#include "tributary/transport/rdma_path.h"

namespace tributary::transport::verbs {

class QueuePair {
 public:
  struct Wanted {
    ibv_pd* domain = nullptr;
    ibv_cq* completions = nullptr;
    std::uint32_t sends = 0;
    std::uint32_t receives = 0;
    std::uint32_t inline_bytes = 0;
    std::uint8_t reads_asked = 0;     // at once, of the peer; at most
    std::uint8_t reads_answered = 0;  // at once, for the peer; at most
    bool extended = true;             // by ibv_wr_*, if the library has them
    bool extended_gathers = true;     // lists that gather, too
  };
  QueuePair() = default;
  ~QueuePair() { destroy(); }
  QueuePair(QueuePair&& other) noexcept;
  QueuePair& operator=(QueuePair&&) = delete;

  /// The id's, for iWARP: receives can be posted, and its connection manager does all else. The id outlives it.
  [[nodiscard]] Status make_of_manager(rdma_cm_id& id, const Wanted& wanted);
  [[nodiscard]] Status make(const Wanted& wanted);
  /// One that make() has made can have receives posted. Errc::bad_config: the path asks for what the port has not.
  [[nodiscard]] Status prepare(rdma_cm_id& id, const RdmaPath& path);
  /// The peer's queue pair, where the connection manager does not say which: a further one's.
  struct Peer {
    std::uint32_t number = 0;
    std::uint32_t its_first_packet = 0;
    std::uint32_t our_first_packet = 0;
  };
  /// It receives from, and sends to, that one. The id is about to be established, or to be accepted.
  [[nodiscard]] Status connect(rdma_cm_id& id, const RdmaPath& path, const Peer* peer);
  /// Nothing is received or sent any more, but what hangs on it can still be given back. The manager's own is
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
  [[nodiscard]] Status make_by(const Wanted& wanted, Make make);
  using Change = std::function<Status(ibv_qp_attr&)>;
  [[nodiscard]] Status step_to(ibv_qp_state state, rdma_cm_id& id, const Change& change);
  [[nodiscard]] int post_extended() noexcept;

  rdma_cm_id* id_ = nullptr;  // whose it is, if it is the manager's
  ibv_qp* pair_ = nullptr;
  ibv_qp_ex* extended_ = nullptr;
  bool extended_gathers_ = true;
  std::uint8_t reads_asked_ = 0;
  std::uint8_t reads_answered_ = 0;
  std::uint32_t inline_bytes_ = 0;
};

}  // namespace tributary::transport::verbs
