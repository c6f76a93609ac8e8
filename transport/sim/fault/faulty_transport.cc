#include "transport/sim/fault/faulty_channel.h"

namespace tributary::transport {
namespace {

/// Wraps each channel that is accepted.
class FaultyAcceptor final : public Acceptor {
 public:
  FaultyAcceptor(std::shared_ptr<FaultCore> core, Acceptor& acceptor) : core_(std::move(core)), acceptor_(acceptor) {}
  ChannelHandler* on_accept(std::unique_ptr<Channel> inner) override {
    auto channel = std::make_unique<FaultyChannel>(core_);
    FaultyChannel* const wrapped = channel.get();
    channel->set_inner(std::move(inner));
    ChannelHandler* handler = acceptor_.on_accept(std::move(channel));
    if (handler == nullptr) return nullptr;
    wrapped->set_handler(handler);
    return wrapped;
  }

 private:
  std::shared_ptr<FaultCore> core_;
  Acceptor& acceptor_;
};

class FaultyListener final : public Listener {
 public:
  explicit FaultyListener(std::unique_ptr<FaultyAcceptor> acceptor) : acceptor_(std::move(acceptor)) {}
  Endpoint local() const override { return inner_->local(); }
  void set_inner(std::unique_ptr<Listener> inner) { inner_ = std::move(inner); }
  FaultyAcceptor& acceptor() { return *acceptor_; }

 private:
  std::unique_ptr<FaultyAcceptor> acceptor_;
  std::unique_ptr<Listener> inner_;  // destroyed first
};

/// Lets the channels whose time has come go on. A resume() runs no callback, so the list does not change meanwhile.
template <class Predicate>
void resume_where(FaultCore& core, Predicate due_now) {
  std::vector<FaultyChannel*> due;
  std::erase_if(core.waiting, [&](const FaultCore::Waiting& w) {
    if (due_now(w.until)) due.push_back(w.channel);
    return due_now(w.until);
  });
  for (FaultyChannel* channel : due) channel->go_on();
}

}  // namespace

FaultyTransport::FaultyTransport(Transport& inner, const FaultPlan& plan)
    : inner_(inner), core_(std::make_shared<FaultCore>(inner, plan)) {}
FaultyTransport::~FaultyTransport() = default;

Result<std::unique_ptr<Listener>> FaultyTransport::listen(const Endpoint& at, Acceptor& acceptor) {
  auto listener = std::make_unique<FaultyListener>(std::make_unique<FaultyAcceptor>(core_, acceptor));
  auto inner = inner_.listen(at, listener->acceptor());
  if (!inner) return std::unexpected(inner.error());
  listener->set_inner(std::move(*inner));
  return listener;
}

std::unique_ptr<Channel> FaultyTransport::connect(const Endpoint& to, ChannelHandler& handler, Duration limit) {
  auto channel = std::make_unique<FaultyChannel>(core_);
  channel->set_handler(&handler);
  channel->set_inner(inner_.connect(to, *channel, limit));
  return channel;
}

std::size_t FaultyTransport::poll(Duration wait) {
  const TimePoint deadline = now() + wait;
  while (true) {
    const TimePoint before = now();
    resume_where(*core_, [before](TimePoint until) { return until <= before; });
    const TimePoint until = std::min(deadline, core_->next_due());
    const std::size_t callbacks = inner_.poll(std::max(Duration::zero(), until - before));
    if (callbacks > 0 || now() >= deadline || now() == before) {
      core_->ask_to_be_woken();
      return callbacks;
    }
  }
}

void FaultyTransport::on_wake(std::function<void(TimePoint)> wake) {
  core_->wake = std::move(wake);
}

void FaultyTransport::release_held() {
  resume_where(*core_, [](TimePoint until) { return until == TimePoint::max(); });
}

std::uint64_t FaultyTransport::count(Fault fault) const noexcept {
  return core_->counts[static_cast<std::size_t>(fault)];
}

}  // namespace tributary::transport
