#pragma once
// Exchanges handles between the ranks of a check: a star around rank 0, as in NCCL's own bootstrap.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tributary::cli::nccl_check {

class Bootstrap {
 public:
  /// Blocks until all ranks have come; throws Failure after `limit`.
  Bootstrap(int rank, int ranks, const std::string& host, std::uint16_t port, std::chrono::seconds limit);
  ~Bootstrap();
  Bootstrap(const Bootstrap&) = delete;
  Bootstrap& operator=(const Bootstrap&) = delete;

  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int ranks() const noexcept { return ranks_; }
  /// Returns every rank's bytes, by rank; all ranks must pass equally many bytes.
  [[nodiscard]] std::vector<std::byte> all_gather(std::span<const std::byte> mine);
  void barrier() { static_cast<void>(all_gather(std::vector<std::byte>(1))); }
  template <class T>
  [[nodiscard]] std::vector<T> all_gather_value(const T& mine) {
    const auto bytes = all_gather(std::as_bytes(std::span(&mine, 1)));
    std::vector<T> all(static_cast<std::size_t>(ranks_));
    std::copy(bytes.begin(), bytes.end(), reinterpret_cast<std::byte*>(all.data()));
    return all;
  }

 private:
  void gather_connections(const std::string& host, std::uint16_t port, std::chrono::seconds limit);
  void connect_to_root(const std::string& host, std::uint16_t port, std::chrono::seconds limit);

  const int rank_;
  const int ranks_;
  std::vector<int> sockets_;  // on rank 0: by rank, and [0] is -1; on other ranks: only the socket to rank 0
};

}  // namespace tributary::cli::nccl_check
