#pragma once
// One collComm with its memory and its requests.
#include <deque>
#include <memory>
#include <vector>

#include "client/cli/nccl_check/session.h"

namespace tributary::cli::nccl_check {

struct Operation {
  abi::DataType type = abi::DataType::float32;
  abi::RedOp op = abi::RedOp::sum;
  std::size_t bytes = 0;       // bytes of the chunk that is reduced
  std::size_t bytes_used = 0;  // how many of these bytes are data; stale bytes follow, as in NCCL's buffers
};

/// A group. Its region has one half for sending and one half for receiving, each with a place for every request in
/// flight.
class Group {
 public:
  static constexpr std::size_t kChunkBytes = 256 << 10;

  Group(Session& session, int number);

  // Functions for the service thread: call each of them once, in this order.
  void listen();
  [[nodiscard]] const std::vector<std::byte>& handle() const noexcept { return handle_; }
  [[nodiscard]] bool connect(std::vector<std::byte> handles);
  void register_memory();
  void close();
  // Functions for the service thread, at any time.
  void register_and_deregister();

  // Functions for the progress thread.
  /// Queues an allreduce, if a place is free and the plugin accepts the request.
  [[nodiscard]] bool start(const Operation& operation);
  /// Makes progress; checks the results of ended requests, unless `unchecked`. Returns true if a request has ended.
  bool poll(bool unchecked = false);
  [[nodiscard]] std::size_t in_flight() const noexcept { return in_flight_.size(); }
  void check_windows();
  void check_flush();

  [[nodiscard]] std::uint64_t ended() const noexcept { return ended_; }
  [[nodiscard]] std::uint64_t put_off() const noexcept { return put_off_; }  // number of requests that stayed NULL

 private:
  struct Flight {
    Operation operation;
    unsigned seed = 0;
    std::size_t place = 0;
    void* request = nullptr;
  };

  [[nodiscard]] std::span<std::byte> send_place(std::size_t place);
  [[nodiscard]] std::span<std::byte> receive_place(std::size_t place);
  void check(const Flight& flight);
  void finish(void* request);
  void check_gather_window(std::size_t per_rank, std::size_t offset, std::size_t bytes);
  void check_scatter_window(std::size_t per_rank, std::size_t offset, std::size_t bytes);

  Session& session_;
  const int number_;
  std::vector<std::byte> handle_;
  std::vector<std::byte> region_;
  void* listen_comm_ = nullptr;
  void* comm_ = nullptr;
  std::vector<void*> memory_;
  std::vector<std::size_t> free_places_;
  std::deque<Flight> in_flight_;
  unsigned next_seed_;
  std::uint64_t ended_ = 0;
  std::uint64_t put_off_ = 0;
};

}  // namespace tributary::cli::nccl_check
