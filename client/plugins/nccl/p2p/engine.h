#pragma once
// One transport, and the lock that allows one thread at a time to use the transport.
//
// NCCL connects and closes on its service thread. It sends, receives and tests on its progress thread, which never
// sleeps. So no thread waits for another thread, and no call is handed over: the calling thread takes the lock and
// moves all connections on. Two threads want the lock at once only if two communicators of one process share an engine
// (tables before v11), or while a connection is made.
#include <atomic>
#include <memory>
#include <mutex>

#include "client/plugins/nccl/devices.h"
#include "client/plugins/nccl/p2p/handle_keys.h"
#include "tributary/protocol/assert.h"
#include "tributary/transport/channel.h"
#include "tributary/transport/tcp.h"

namespace tributary::nccl {

class Engine {
 public:
  /// Opens a transport over the wire that wire() returns. The error is a whole sentence. `traffic_class` is the class
  /// of the packets (DSCP and ECN); 0: the system's value.
  [[nodiscard]] static tributary::Result<std::shared_ptr<Engine>> open(const NetDevice& device,
                                                                       std::uint8_t traffic_class = 0);

  [[nodiscard]] std::unique_lock<std::mutex> lock() { return std::unique_lock(mutex_); }
  /// Returns true if connections leave this engine as bare sockets once both ends are proved.
  [[nodiscard]] bool has_sockets() const noexcept { return tcp_ != nullptr; }
  /// Moves on the connections that are being made, if there are any. Call it in every wait for something else. Returns
  /// at once if another thread already moves them on.
  void settle() {
    if (unsettled_.load(std::memory_order_relaxed) == 0) return;
    if (const std::unique_lock free(mutex_, std::try_to_lock); free) poll();
  }
  // Functions to call with the lock held.
  [[nodiscard]] transport::Transport& transport() noexcept { return *transport_; }
  void poll() { transport_->poll({}); }
  /// Returns true if the close of a channel may lose the last frames, because they leave this process only later.
  /// Returns false for sockets: there the system sends the frames.
  [[nodiscard]] bool loses_last_words() const noexcept { return tcp_ == nullptr; }
  /// The secrets that seal this engine's connections.
  [[nodiscard]] HandleKeys& keys() noexcept { return keys_; }
  /// Takes the socket out of a channel of this engine, and closes the channel (see TcpTransport::release()).
  [[nodiscard]] tributary::Result<transport::ReleasedSocket> release(transport::Channel& channel) {
    TRIBUTARY_ASSERT(tcp_ != nullptr, "a channel over verbs has no socket to release");
    return tcp_->release_with_seal(channel);
  }
  /// For a channel that this process connected: returns the address of the connecting end; empty over verbs.
  [[nodiscard]] std::string connecting_end(transport::Channel& channel) const;
  /// For a channel that this process accepted: returns the address of the connecting end; empty over verbs.
  [[nodiscard]] std::string accepted_end(const transport::Channel& channel) const;

 private:
  friend class Settling;
  Engine(HandleKeys keys, std::unique_ptr<transport::Transport> transport)
      : keys_(std::move(keys)),
        transport_(std::move(transport)),
        tcp_(dynamic_cast<transport::TcpTransport*>(transport_.get())) {}

  std::mutex mutex_;
  HandleKeys keys_;
  const std::unique_ptr<transport::Transport> transport_;
  transport::TcpTransport* const tcp_;  // nullptr over verbs
  std::atomic<int> unsettled_{0};       // number of listening ends and of connections that are being made
};

/// A share of an engine. While it exists, settle() calls poll().
class Settling {
 public:
  explicit Settling(std::shared_ptr<Engine> engine) : engine_(std::move(engine)) { ++engine_->unsettled_; }
  ~Settling() {
    const int before = engine_->unsettled_.fetch_sub(1);
    TRIBUTARY_ASSERT(before > 0, "an engine had {} unsettled connections", before);
  }
  Settling(const Settling&) = delete;
  Settling& operator=(const Settling&) = delete;

  [[nodiscard]] Engine& engine() const noexcept { return *engine_; }
  [[nodiscard]] const std::shared_ptr<Engine>& shared_engine() const noexcept { return engine_; }

 private:
  const std::shared_ptr<Engine> engine_;
};

class SendComm;

/// The engines of one communicator, or of the process if NCCL gives no context. Any thread may call it.
class NetContext {
 public:
  /// `traffic_class` is a number of ncclConfig_t, or any other number for the system's value.
  explicit NetContext(int traffic_class);
  ~NetContext();
  NetContext(const NetContext&) = delete;
  NetContext& operator=(const NetContext&) = delete;

  /// Returns nullptr if the device does not exist or cannot be used. The log then has the reason.
  [[nodiscard]] std::shared_ptr<Engine> engine(int device);

  /// Keeps a connection that is not open yet. NCCL holds no pointer to it: after ncclCommAbort it no longer asks, and
  /// the end of this object ends the connection.
  SendComm* keep(std::unique_ptr<SendComm> opening);
  /// Gives a connection back that keep() has taken.
  [[nodiscard]] std::unique_ptr<SendComm> take(SendComm* opening);

 private:
  const std::uint8_t traffic_class_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<Engine>> engines_;  // index: the device; made at the first use
  std::vector<std::unique_ptr<SendComm>> opening_;
};

}  // namespace tributary::nccl
