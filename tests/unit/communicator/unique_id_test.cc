// The unique id carries the protocol's version, so ranks of different versions refuse each other before they meet.
#include "client/control/unique_id.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tributary/protocol/frame.h"

namespace tributary::client {
namespace {

using testing::HasSubstr;

constexpr std::size_t kVersionAt = 7;  // behind "TRIBUID"

UniqueIdBytes an_id() {
  UniqueId id;
  id.root = {"node-1", 7000};
  return encode(id).value();
}

TEST(UniqueId, IsReadAsItWasMade) {
  const auto id = decode_unique_id(an_id());
  ASSERT_TRUE(id) << id.error().message;
  EXPECT_EQ(id->root.host, "node-1");
  EXPECT_EQ(id->root.port, 7000);
}

TEST(UniqueId, AnIdOfAnotherProtocolVersionIsRefusedWithBothVersions) {
  UniqueIdBytes bytes = an_id();
  EXPECT_EQ(bytes[kVersionAt], '0' + kProtocolVersion);
  for (const int version : {kProtocolVersion - 1, kProtocolVersion + 1}) {
    bytes[kVersionAt] = static_cast<unsigned char>('0' + version);
    const auto id = decode_unique_id(bytes);
    ASSERT_FALSE(id);
    EXPECT_EQ(id.error().code, Errc::bad_argument);
    EXPECT_THAT(id.error().message, HasSubstr("protocol version " + std::to_string(version)));
    EXPECT_THAT(id.error().message, HasSubstr("this process speaks version " + std::to_string(kProtocolVersion)));
    EXPECT_THAT(id.error().message, HasSubstr("same version of libtributary"));
  }
}

TEST(UniqueId, GarbageIsNoIdOfAnotherVersion) {
  UniqueIdBytes bytes = an_id();
  bytes[kVersionAt] = '\n';
  EXPECT_THAT(decode_unique_id(bytes).error().message, HasSubstr("no unique id"));
  EXPECT_THAT(decode_unique_id({}).error().message, HasSubstr("no unique id"));
}

}  // namespace
}  // namespace tributary::client
