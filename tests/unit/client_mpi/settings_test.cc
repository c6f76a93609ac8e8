// The limit from which calls go by Tributary.
#include "client/plugins/mpi/settings.h"

#include <gtest/gtest.h>

namespace tributary::mpi {
namespace {

Settings read(const std::string& text) {
  Settings settings;
  EXPECT_TRUE(read_bytes_min(text, settings)) << text;
  return settings;
}

TEST(MpiSettings, ANumberOfBytesTakesThePlaceOfMeasurements) {
  EXPECT_FALSE(read("65536").measured);
  EXPECT_EQ(read("65536").bytes_min, 65536U);
  EXPECT_EQ(read("64K").bytes_min, 65536U);
  EXPECT_EQ(read("2M").bytes_min, 2U << 20);
  EXPECT_EQ(read("0").bytes_min, 0U);
}

TEST(MpiSettings, AutoMeasuresAndOffLeavesAllCallsToMpi) {
  EXPECT_TRUE(read("auto").measured);
  EXPECT_FALSE(read("auto").off);
  EXPECT_TRUE(read("off").off);
}

TEST(MpiSettings, OtherTextsChangeNothing) {
  for (const char* text : {"many", "-1", "64k", "64KB", "1.5M", " 1", "99999999999999999999"}) {
    Settings settings;
    EXPECT_FALSE(read_bytes_min(text, settings)) << text;
    EXPECT_TRUE(settings.measured) << text;
    EXPECT_EQ(settings.bytes_min, Settings::kAutoBytesMin) << text;
  }
}

}  // namespace
}  // namespace tributary::mpi
