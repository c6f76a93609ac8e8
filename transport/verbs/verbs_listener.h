#pragma once
// Listens. A connect request becomes a connection of this transport, or of the transport that the route returns.
#include "transport/verbs/verbs_connection.h"

namespace tributary::transport::verbs {

class VerbsListenPoint final : public Notified {
 public:
  /// A listener has an acceptor or a route.
  VerbsListenPoint(const std::shared_ptr<VerbsCore>& core, Acceptor* acceptor, VerbsTransport::Route route);
  ~VerbsListenPoint() override;
  VerbsListenPoint(const VerbsListenPoint&) = delete;
  VerbsListenPoint& operator=(const VerbsListenPoint&) = delete;

  [[nodiscard]] Status open(const Endpoint& at);
  [[nodiscard]] Endpoint local() const;
  void notice(const Notice& notice) override;
  void shut_down() override;

 private:
  std::weak_ptr<VerbsCore> core_;
  Acceptor* acceptor_;
  VerbsTransport::Route route_;
  std::shared_ptr<bool> listening_ = std::make_shared<bool>(true);  // false: connections that are being opened must end
  ConnectionIdPtr id_;
  std::string host_;
};

class VerbsListener final : public Listener {
 public:
  VerbsListener(std::shared_ptr<VerbsCore> core, std::unique_ptr<VerbsListenPoint> point)
      : core_(std::move(core)), point_(std::move(point)), local_(point_->local()) {}
  [[nodiscard]] Endpoint local() const override { return local_; }

 private:
  std::shared_ptr<VerbsCore> core_;
  std::unique_ptr<VerbsListenPoint> point_;
  Endpoint local_;
};

/// Moves the id's events to `core`. When the connection is open, it goes to `acceptor()`, unless this is nullptr. Until
/// `key_until` the request waits for the manager's key, if this side has none.
void take_request(const std::shared_ptr<VerbsCore>& core, ConnectionIdPtr id, const Greeting& greeting,
                  std::uint8_t reads, std::function<Acceptor*()> acceptor,
                  TimePoint key_until = Clock::now() + kKeyLimit);

}  // namespace tributary::transport::verbs
