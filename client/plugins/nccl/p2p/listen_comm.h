#pragma once
// Waits for peers, which must prove that they know the handle's secret (greeting.h).
#include <memory>
#include <string>

#include "client/plugins/nccl/p2p/handle.h"
#include "client/plugins/nccl/p2p/receive_comm.h"

namespace tributary::nccl {

class ListenComm : public transport::Acceptor {
 public:
  /// Listens on the engine's device, and fills the handle.
  [[nodiscard]] static tributary::Result<std::unique_ptr<ListenComm>> open(std::shared_ptr<Engine> engine,
                                                                           const NetDevice& device, void* handle);
  /// A derived class calls stop_listening() in its own destructor, with the lock held.
  ~ListenComm() override = default;
  ListenComm(const ListenComm&) = delete;
  ListenComm& operator=(const ListenComm&) = delete;

  /// Returns nullptr as long as no peer has proved itself. Never blocks.
  [[nodiscard]] virtual std::unique_ptr<ReceiveComm> accept() = 0;

 protected:
  explicit ListenComm(std::shared_ptr<Engine> engine) : settling_(std::move(engine)) {}
  [[nodiscard]] Engine& engine() const noexcept { return settling_.engine(); }
  [[nodiscard]] const std::shared_ptr<Engine>& shared_engine() const noexcept { return settling_.shared_engine(); }
  [[nodiscard]] const NetHandle& handle() const noexcept { return handle_; }
  /// Returns the address that the handle holds.
  [[nodiscard]] std::string listening_at() const { return to_string(handle_.endpoint()); }
  /// Refuses all connections from now on. The caller holds the lock.
  void stop_listening() {
    listener_.reset();
    engine().keys().stop_listening(handle_.secret);
  }

 private:
  [[nodiscard]] Status listen(const NetDevice& device);

  const Settling settling_;
  NetHandle handle_;
  std::unique_ptr<transport::Listener> listener_;
};

}  // namespace tributary::nccl
