#include "client/api/progress_thread.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <new>

#include "tributary/transport/tcp.h"

namespace tributary::client {
namespace {

/// A transport over TCP until the test makes it fail, as in a process without memory.
class FailingTransport final : public transport::Transport {
 public:
  explicit FailingTransport(std::atomic<bool>& fails) : fails_(fails) {}
  Result<std::unique_ptr<transport::Listener>> listen(const Endpoint& at, transport::Acceptor& acceptor) override {
    return tcp_.listen(at, acceptor);
  }
  std::unique_ptr<transport::Channel> connect(const Endpoint& to, transport::ChannelHandler& handler,
                                              transport::Duration limit) override {
    return tcp_.connect(to, handler, limit);
  }
  std::size_t poll(transport::Duration wait) override {
    if (fails_) throw std::bad_alloc();
    return tcp_.poll(wait);
  }
  transport::TimePoint now() const override { return tcp_.now(); }
  void post(std::function<void()> call) override { tcp_.post(std::move(call)); }

 private:
  std::atomic<bool>& fails_;
  transport::TcpTransport tcp_;
};

struct Outcome {
  std::promise<Status> ready;
  std::promise<Error> over;
};

ProgressThread::Events events_of(Outcome& outcome) {
  return {.ready = [&](const Status& status, const auto&) { outcome.ready.set_value(status); },
          .over = [&](const Error& why) { outcome.over.set_value(why); }};
}

/// The parts of a lone rank, which is rank 0 without a meeting.
ProgressParts alone(std::unique_ptr<transport::Transport> transport) {
  ProgressParts parts;
  parts.transport = std::move(transport);
  parts.settings.nranks = 1;
  parts.settings.id.root = {"127.0.0.1", 1};
  return parts;
}

TEST(ProgressThread, RunsCallsInTheirOrderAndTellsItsEndLast) {
  Outcome outcome;
  ProgressThread thread(alone(std::make_unique<transport::TcpTransport>()), events_of(outcome));
  EXPECT_TRUE(outcome.ready.get_future().get());
  std::vector<int> ran;
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(thread.submit([&ran, i](Communicator&) { ran.push_back(i); }));
  std::promise<void> last;
  ASSERT_TRUE(thread.submit([&](Communicator&) { last.set_value(); }));
  last.get_future().wait();
  ASSERT_EQ(ran.size(), 1000U);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(ran[static_cast<std::size_t>(i)], i);
  thread.stop();
  EXPECT_EQ(outcome.over.get_future().get().code, Errc::aborted);
  EXPECT_FALSE(thread.submit([](Communicator&) { ADD_FAILURE() << "it is over"; }));
}

TEST(ProgressThread, AnExceptionEndsTheCommunicatorAndNotTheProcess) {
  std::atomic<bool> fails{false};
  Outcome outcome;
  ProgressThread thread(alone(std::make_unique<FailingTransport>(fails)), events_of(outcome));
  EXPECT_TRUE(outcome.ready.get_future().get());
  fails = true;
  const Error why = outcome.over.get_future().get();
  EXPECT_EQ(why.code, Errc::exhausted);
  EXPECT_NE(why.message.find("bad_alloc"), std::string::npos) << why.message;
  EXPECT_FALSE(thread.submit([](Communicator&) { ADD_FAILURE() << "it is over"; }));
}

}  // namespace
}  // namespace tributary::client
