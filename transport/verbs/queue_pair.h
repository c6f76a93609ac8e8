#pragma once
// A reliable queue pair of a connection, and the work that waits for it. It hands lists of requests to the device, with
// one doorbell for each list, by the extended posting calls (ibv_wr_*) if the device's library has them.
//
// The connection manager knows a connection's first queue pair by its number, and gives the connection's path. Further
// queue pairs use the same path; their numbers are in the greetings. iWARP's connection manager makes its queue pair
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
    std::uint8_t reads_asked = 0;     // the most reads of the peer's memory at the same time
    std::uint8_t reads_answered = 0;  // the most reads by the peer at the same time
    bool extended = true;             // true: posts by ibv_wr_* if the library has these calls
    bool extended_gathers = true;     // true: also posts lists that gather several buffers by ibv_wr_*
  };
  QueuePair() = default;
  ~QueuePair() { destroy(); }
  QueuePair(QueuePair&& other) noexcept;
  QueuePair& operator=(QueuePair&&) = delete;

  /// Makes the id's queue pair, for iWARP. Receives can be posted after this call, and iWARP's connection manager does
  /// the rest. The id must outlive the queue pair.
  [[nodiscard]] Status make_of_manager(rdma_cm_id& id, const Wanted& wanted);
  [[nodiscard]] Status make(const Wanted& wanted);
  /// Prepares a queue pair of make(), so that receives can be posted. Errc::bad_config: the port does not support a
  /// value of the path.
  [[nodiscard]] Status prepare(rdma_cm_id& id, const RdmaPath& path);
  /// Sets the peer's queue pair. Called for further queue pairs, which the connection manager does not know.
  struct Peer {
    std::uint32_t number = 0;
    std::uint32_t its_first_packet = 0;
    std::uint32_t our_first_packet = 0;
  };
  /// Connects the two queue pairs, right before the connection is established or accepted.
  [[nodiscard]] Status connect(rdma_cm_id& id, const RdmaPath& path, const Peer* peer);
  /// Ends receiving and sending. Windows and registrations can still be given back. Has no effect on the connection
  /// manager's queue pair, which rdma_disconnect() stops.
  void stop() noexcept;
  void destroy() noexcept;

  [[nodiscard]] explicit operator bool() const noexcept { return pair_ != nullptr; }
  [[nodiscard]] ibv_qp* get() const noexcept { return pair_; }
  [[nodiscard]] std::uint32_t inline_bytes() const noexcept { return inline_bytes_; }
  [[nodiscard]] bool extended() const noexcept { return extended_ != nullptr; }

  /// The list of requests that are posted together in this turn.
  SendList list;
  /// Posts the list to the device, and clears the list in any case. Returns 0 or errno.
  [[nodiscard]] int post() noexcept;

  // ---- Counts that the connection keeps
  std::uint32_t index = 0;    // index among the connection's queue pairs
  std::uint32_t posted = 0;   // work requests in the list and on the send queue
  std::uint32_t retired = 0;  // requests that are known to be done
  std::uint32_t since_signal = 0;
  bool tells_end = false;                 // the last request of the list must be signalled
  std::vector<std::uint32_t> to_receive;  // receives that must be posted again

 private:
  [[nodiscard]] static ibv_qp_init_attr_ex attributes(const Wanted& wanted) noexcept;
  template <class Make>
  [[nodiscard]] Status make_by(const Wanted& wanted, Make make);
  using Change = std::function<Status(ibv_qp_attr&)>;
  [[nodiscard]] Status step_to(ibv_qp_state state, rdma_cm_id& id, const Change& change);
  [[nodiscard]] int post_extended() noexcept;

  rdma_cm_id* id_ = nullptr;  // the connection manager's id, if it made this queue pair
  ibv_qp* pair_ = nullptr;
  ibv_qp_ex* extended_ = nullptr;
  bool extended_gathers_ = true;
  std::uint8_t reads_asked_ = 0;
  std::uint8_t reads_answered_ = 0;
  std::uint32_t sends_max_ = 0;  // number of requests that fit into the send queue
  std::uint32_t inline_bytes_ = 0;
};

}  // namespace tributary::transport::verbs
