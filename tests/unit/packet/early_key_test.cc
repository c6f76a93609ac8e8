// A child may connect before the aggregator has its manager's key, from which the connection's secret follows. The
// child asks again until the key is there.
#include "tests/unit/packet/ends.h"
#include "tests/unit/packet/sealed_keys.h"

namespace tributary::transport::packet::test {
namespace {

using namespace std::chrono_literals;
using transport::test::sealed_keys;
using transport::test::secret_of;

class EarlyKey : public ::testing::Test {
 protected:
  EarlyKey() {
    keys_there_->set_derive([this](const LinkName& name) -> LinkKeys::Found {
      if (!has_key_) return std::unexpected(NoSecret::not_yet);
      return secret_of(static_cast<std::uint8_t>(1 + name.child));
    });
    listener_ = server_.listen({SimPackets::host(1), 0}, sinks_).value();
    source_.channel = client_.connect(listener_->local(), source_, 10s);
    source_.feed();
  }
  static PacketSettings settings(std::uint64_t seed, std::shared_ptr<LinkKeys> keys) {
    PacketSettings settings;
    settings.seed = seed;
    settings.keys = std::move(keys);
    return settings;
  }
  bool run(const std::function<bool()>& done, Duration limit) {
    return network_.run_until({&server_, &client_}, done, limit);
  }

  bool has_key_ = false;
  SimPackets network_{4};
  std::shared_ptr<LinkKeys> keys_there_ = std::make_shared<LinkKeys>(PacketSecurity::encrypt);
  PacketTransport server_{network_.opener(1), settings(1, keys_there_), network_.time()};
  PacketTransport client_{network_.opener(2), settings(2, sealed_keys(PacketSecurity::encrypt)), network_.time()};
  Sinks sinks_;
  std::unique_ptr<Listener> listener_;
  Source source_{1000, 20};
};

TEST_F(EarlyKey, AConnectionWaitsForIt) {
  EXPECT_FALSE(run([&] { return source_.opened || source_.closed; }, 2s));
  EXPECT_TRUE(sinks_.all.empty());
  EXPECT_EQ(server_.statistics().connections, 0U) << "the listener keeps no state meanwhile";
  has_key_ = true;
  EXPECT_TRUE(run([&] { return source_.opened; }, 200ms)) << "the client asks at least every 100 ms";
  EXPECT_TRUE(run([&] { return !sinks_.all.empty() && sinks_.all[0]->frames > 0; }, 2s));
}

TEST_F(EarlyKey, AConnectionEndsWithTheReasonIfItDoesNotCome) {
  EXPECT_FALSE(run([&] { return source_.closed.has_value(); }, 2900ms));
  ASSERT_TRUE(run([&] { return source_.closed.has_value(); }, 500ms));
  EXPECT_EQ(source_.closed->code, Errc::denied);
  EXPECT_NE(source_.closed->message.find("has not reached its manager yet"), std::string::npos)
      << source_.closed->message;
}

TEST_F(EarlyKey, AnotherSecretThanTheKeysIsRefusedAtOnce) {
  has_key_ = true;
  Source other{1000, 20};
  PacketTransport forger(network_.opener(3), settings(3, sealed_keys(PacketSecurity::encrypt, 50)), network_.time());
  other.channel = forger.connect(listener_->local(), other, 10s);
  other.channel->send_copy(transport::test::header_of(0), {});
  EXPECT_TRUE(network_.run_until({&server_, &client_, &forger}, [&] { return other.closed.has_value(); }, 500ms));
}

}  // namespace
}  // namespace tributary::transport::packet::test
