#include "client/api/request.h"

#include <gtest/gtest.h>

#include <thread>

namespace tributary::client {
namespace {

std::shared_ptr<Request> make() {
  return std::make_shared<Request>(std::make_shared<CommErrors>());
}

TEST(Request, TheFirstOutcomeCounts) {
  const auto request = make();
  EXPECT_FALSE(request->done());
  request->complete({});
  request->complete(fail(Errc::aborted, "too late"));
  EXPECT_TRUE(request->done());
  EXPECT_EQ(request->report_outcome(), TRIBUTARY_OK);
}

TEST(Request, WaitingEndsWithTheOutcomeOrTheDeadline) {
  const auto request = make();
  EXPECT_FALSE(request->wait(std::chrono::steady_clock::now() + std::chrono::milliseconds(1)));
  EXPECT_FALSE(request->wait(std::chrono::steady_clock::now()));
  std::thread other([request] { request->complete(fail(Errc::peer_gone, "rank 3 is gone")); });
  EXPECT_TRUE(request->wait());
  other.join();
  EXPECT_EQ(request->report_outcome(), TRIBUTARY_ERROR_PEER_GONE);
  EXPECT_STREQ(last_error(nullptr), "rank 3 is gone");
}

TEST(Request, TellsOnceWhenItIsDone) {
  const auto request = make();
  int told = 0, never = 0;
  EXPECT_TRUE(request->when_done([&] {
    ++told;
    EXPECT_TRUE(request->done());
    EXPECT_EQ(request->when_done([] {}), true) << "the request's lock is free";
  }));
  EXPECT_FALSE(request->when_done([&] { ++never; })) << "the first call waits for the end already";
  EXPECT_EQ(told, 0);
  request->complete({});
  request->complete({});
  EXPECT_EQ(told, 1);
  EXPECT_TRUE(request->when_done([&] { ++told; }));
  EXPECT_EQ(told, 2) << "the function runs at once, on this thread";
  EXPECT_EQ(never, 0);
}

TEST(Request, HandsOutTheSourceOfAReceiveThatEndedWell) {
  for (const bool good : {true, false}) {
    const auto request = make();
    int source = -7;
    request->want_source(&source);
    request->note_peer(3);
    request->complete(good ? Status{} : fail(Errc::peer_gone, "rank 3 is gone"));
    EXPECT_EQ(request->peer(), good ? 3 : -1);
    EXPECT_EQ(source, -7) << "the caller may still read it";
    static_cast<void>(request->report_outcome());
    EXPECT_EQ(source, good ? 3 : -7);
  }
}

TEST(LastError, IsPerThreadAndPerCommunicator) {
  CommErrors one, two;
  report(Errc::bad_argument, "one, here", &one);
  report(Errc::bad_argument, "two, here", &two);
  EXPECT_STREQ(last_error(nullptr), "two, here");
  EXPECT_STREQ(last_error(&one), "one, here");
  std::thread([&] {
    EXPECT_STREQ(last_error(nullptr), "");
    EXPECT_STREQ(last_error(&one), "one, here");
    report(Errc::io, "one, there", &one);
    EXPECT_STREQ(last_error(&one), "one, there");
  }).join();
  EXPECT_STREQ(last_error(nullptr), "two, here") << "another thread's error is not this one's";
  EXPECT_STREQ(last_error(&two), "two, here");
}

TEST(LastError, EveryCodeHasAStatus) {
  for (int code = 0; code <= static_cast<int>(Errc::aborted); ++code)
    EXPECT_LT(to_status(static_cast<Errc>(code)), TRIBUTARY_OK);
  EXPECT_EQ(to_status(static_cast<Errc>(200)), TRIBUTARY_ERROR_INTERNAL);
  EXPECT_EQ(to_status(Errc::io), TRIBUTARY_ERROR_SYSTEM);
  EXPECT_EQ(to_status(Errc::mismatch), TRIBUTARY_ERROR_MISMATCH);
}

}  // namespace
}  // namespace tributary::client
