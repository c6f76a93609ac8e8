// The calls between a FrameReader and its handler for one frame after another, without any transport.
#include "transport/channel/frame_reader.h"

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <vector>

#include "transport/channel/forwarding_channel.h"

namespace tributary::transport::test {
namespace {

/// A connection that only records the calls that it gets.
class Script final : public ChannelHandler {
 public:
  // ---- the handler's answers
  std::function<Placement(const FrameHeader&)> answer;
  std::function<void()> on_frame_runs = [] {};

  // ---- the record
  std::vector<FrameHeader> shown, delivered;
  int callbacks = 0, turns = 0;
  std::optional<Error> closed;
  bool open = true;
  FrameReader reader;

  // ---- the connection's side
  [[nodiscard]] ChannelHandler* handler() { return this; }
  [[nodiscard]] Channel* channel() { return nullptr_channel(); }
  void count_callback() { ++callbacks; }
  [[nodiscard]] bool serving() const { return open; }
  void tell_closed(Error error) {
    open = false;
    closed = std::move(error);
  }
  void make_due() { ++turns; }
  void resume() {
    if (reader.resume()) make_due();
  }

  Placement on_header(Channel&, const FrameHeader& header) override {
    shown.push_back(header);
    return answer(header);
  }
  void on_frame(Channel&, const FrameHeader& header, std::span<std::byte>) override {
    delivered.push_back(header);
    on_frame_runs();
  }
  void on_closed(Channel&, const Error&) override {}

 private:
  class Nowhere final : public Channel {
    bool send(const FrameHeader&, std::span<const std::byte>, std::uint64_t) override { return false; }
    void send_copy(const FrameHeader&, std::span<const std::byte>) override {}
    void resume() override {}
    void close() override {}
    void close_after_flush(Duration) override {}
    bool closed() const noexcept override { return false; }
    std::string peer() const override { return "nobody"; }
  };
  Channel* nullptr_channel() { return &nowhere_; }
  Nowhere nowhere_;
};

FrameHeader header_of(std::uint64_t sequence, std::size_t payload_bytes) {
  FrameHeader header;
  header.sequence = sequence;
  header.payload_bytes = static_cast<std::uint32_t>(payload_bytes);
  return header;
}

class FrameReaderTest : public testing::Test {
 protected:
  std::array<std::byte, 100> memory_{};
  Script script_;
  FrameReader& reader_ = script_.reader;
};

TEST_F(FrameReaderTest, ReadsAPayloadIntoItsPlaceAndHandsOverTheWholeFrame) {
  script_.answer = [&](const FrameHeader&) { return Accept{memory_}; };
  ASSERT_TRUE(reader_.place(script_, header_of(7, 100)));
  EXPECT_TRUE(reader_.in_frame());
  reader_.land(60);
  EXPECT_FALSE(reader_.whole());
  EXPECT_EQ(reader_.rest().data(), memory_.data() + 60);
  EXPECT_EQ(reader_.rest().size(), 40U);
  reader_.land(40);
  ASSERT_TRUE(reader_.whole());
  EXPECT_TRUE(reader_.deliver(script_));
  EXPECT_FALSE(reader_.in_frame());
  ASSERT_EQ(script_.delivered.size(), 1U);
  EXPECT_EQ(script_.delivered[0].sequence, 7U);
  EXPECT_EQ(script_.callbacks, 2);
}

TEST_F(FrameReaderTest, AFrameWithoutPayloadIsWholeAtOnce) {
  script_.answer = [](const FrameHeader&) { return Accept{}; };
  ASSERT_TRUE(reader_.place(script_, header_of(1, 0)));
  EXPECT_TRUE(reader_.whole());
  EXPECT_TRUE(reader_.deliver(script_));
}

TEST_F(FrameReaderTest, NotYetStopsReadingUntilATurnAfterResume) {
  script_.answer = [](const FrameHeader&) { return NotYet{}; };
  EXPECT_FALSE(reader_.place(script_, header_of(1, 100)));
  EXPECT_TRUE(reader_.stalled());
  EXPECT_FALSE(reader_.in_frame());
  reader_.begin_turn();
  EXPECT_TRUE(reader_.stalled()) << "a turn for another reason reads nothing";
  EXPECT_EQ(script_.turns, 0);
  script_.resume();
  EXPECT_EQ(script_.turns, 1);
  EXPECT_TRUE(reader_.stalled()) << "the header is shown in a later turn, not in the user's call";
  reader_.begin_turn();
  EXPECT_FALSE(reader_.stalled());
}

TEST_F(FrameReaderTest, AResumeWhileOnHeaderRunsCounts) {
  script_.answer = [&](const FrameHeader&) {
    script_.resume();
    return NotYet{};
  };
  EXPECT_FALSE(reader_.place(script_, header_of(1, 100)));
  EXPECT_EQ(script_.turns, 1);
  reader_.begin_turn();
  EXPECT_FALSE(reader_.stalled());
}

TEST_F(FrameReaderTest, AResumeBeforeAHeaderDoesNotAnswerItsNotYet) {
  script_.resume();
  EXPECT_EQ(script_.turns, 0) << "no frame waits for resume()";
  script_.answer = [](const FrameHeader&) { return NotYet{}; };
  EXPECT_FALSE(reader_.place(script_, header_of(1, 100)));
  EXPECT_EQ(script_.turns, 0);
  reader_.begin_turn();
  EXPECT_TRUE(reader_.stalled());
}

TEST_F(FrameReaderTest, ARejectEndsTheConnectionWithTheHandlersWords) {
  script_.answer = [](const FrameHeader&) { return Reject{{Errc::denied, "not for you"}}; };
  EXPECT_FALSE(reader_.place(script_, header_of(1, 100)));
  ASSERT_TRUE(script_.closed);
  EXPECT_EQ(script_.closed->message, "not for you");
}

TEST_F(FrameReaderTest, AChannelThatIsClosedInOnHeaderReadsNoFurther) {
  script_.answer = [&](const FrameHeader&) {
    script_.open = false;
    return Accept{memory_};
  };
  EXPECT_FALSE(reader_.place(script_, header_of(1, 100)));
  EXPECT_FALSE(reader_.in_frame());
}

TEST_F(FrameReaderTest, AChannelThatIsClosedInOnFrameReadsNoFurther) {
  script_.answer = [&](const FrameHeader&) { return Accept{memory_}; };
  script_.on_frame_runs = [&] { script_.open = false; };
  ASSERT_TRUE(reader_.place(script_, header_of(1, 100)));
  reader_.land(100);
  EXPECT_FALSE(reader_.deliver(script_));
}

TEST_F(FrameReaderTest, APlaceOfAnotherLengthIsTheUsersMistake) {
  script_.answer = [&](const FrameHeader&) { return Accept{std::span(memory_).first(99)}; };
  EXPECT_THROW(static_cast<void>(reader_.place(script_, header_of(1, 100))), std::logic_error);
}

TEST_F(FrameReaderTest, APayloadMayBeTakenWhereItLies) {
  reader_.take(header_of(3, 100), memory_);
  EXPECT_TRUE(reader_.whole());
  EXPECT_TRUE(reader_.deliver(script_));
  EXPECT_TRUE(script_.shown.empty()) << "on_header is not asked";
  EXPECT_EQ(script_.delivered.size(), 1U);
}

using FrameReaderDeathTest = FrameReaderTest;

TEST_F(FrameReaderDeathTest, RefusesToHandOverAPartOfAFrame) {
  script_.answer = [&](const FrameHeader&) { return Accept{memory_}; };
  ASSERT_TRUE(reader_.place(script_, header_of(1, 100)));
  reader_.land(99);
  EXPECT_DEATH(static_cast<void>(reader_.deliver(script_)), "a frame is handed over with 99 of its 100 bytes");
}

TEST_F(FrameReaderDeathTest, RefusesMoreBytesThanAreMissing) {
  script_.answer = [&](const FrameHeader&) { return Accept{memory_}; };
  ASSERT_TRUE(reader_.place(script_, header_of(1, 100)));
  reader_.land(60);
  EXPECT_DEATH(reader_.land(41), "41 bytes land where 40 of 100 are missing");
}

TEST_F(FrameReaderDeathTest, DoesNotShowAHeaderInTheMiddleOfAFrame) {
  script_.answer = [&](const FrameHeader&) { return Accept{memory_}; };
  ASSERT_TRUE(reader_.place(script_, header_of(1, 100)));
  EXPECT_DEATH(static_cast<void>(reader_.place(script_, header_of(2, 0))), "with 100 of 100 payload bytes missing");
}

// ---- the user's end of a connection

struct Counted {
  Channel* channel = nullptr;
  int sends = 0, given_back = 0;
  bool destroyed = false;
  void set_channel(Channel* of) { channel = of; }
  void channel_destroyed() { destroyed = true; }
  bool send(const FrameHeader&, std::span<const std::byte>, std::uint64_t) { return ++sends > 0; }
  void send_copy(const FrameHeader&, std::span<const std::byte>) {}
  void give_back(std::span<const std::byte>) { ++given_back; }
  void resume() {}
  void close() {}
  void close_after_flush(Duration) {}
  [[nodiscard]] bool closed() const noexcept { return false; }
  [[nodiscard]] std::string peer() const { return "10.0.0.1:7"; }
};
struct NoCore {};

TEST(ForwardingChannel, PassesCallsOnAndTellsItsEnd) {
  auto connection = std::make_shared<Counted>();
  auto channel = std::make_unique<ForwardingChannel<NoCore, Counted>>(std::make_shared<NoCore>(), connection);
  EXPECT_EQ(connection->channel, channel.get());
  EXPECT_TRUE(channel->send({}, {}, 0));
  channel->give_back({});
  EXPECT_EQ(connection->sends, 1);
  EXPECT_EQ(connection->given_back, 1);
  EXPECT_EQ(channel->peer(), "10.0.0.1:7");
  EXPECT_FALSE(connection->destroyed);
  channel.reset();
  EXPECT_TRUE(connection->destroyed);
}

TEST(ForwardingChannel, IgnoresHintsThatTheConnectionCannotUse) {
  ForwardingChannel<NoCore, Counted> channel(std::make_shared<NoCore>(), std::make_shared<Counted>());
  channel.expect({}, {});
  channel.make_room(1, 1);
  EXPECT_FALSE(channel.shares_memory());
  EXPECT_FALSE(channel.sealed().has_value());
}

}  // namespace
}  // namespace tributary::transport::test
