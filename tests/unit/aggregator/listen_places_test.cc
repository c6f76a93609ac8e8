// An aggregator listens at several addresses, and some of them go away and come back. The test owns the time.
#include "aggregator/daemon/listen_places.h"

#include <gmock/gmock.h>

#include <map>
#include <set>

namespace tributary::aggregator {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Listening final : public transport::Listener {
 public:
  Listening(Endpoint at, int& open) : at_(std::move(at)), open_(open) { ++open_; }
  ~Listening() override { --open_; }
  Listening(const Listening&) = delete;
  Listening& operator=(const Listening&) = delete;
  [[nodiscard]] Endpoint local() const override { return at_; }

 private:
  Endpoint at_;
  int& open_;
};

/// A network in which the test says which hosts exist, and which ports are taken.
class ListenPlacesTest : public ::testing::Test {
 protected:
  ListenWays ways(bool reopens = true) {
    return {.open = [this](const Endpoint& at) -> Result<std::unique_ptr<transport::Listener>> {
              ++tried_;
              if (away_.contains(at.host) || taken_.contains(at.host))
                return fail(Errc::io, "cannot listen at " + to_string(at) + ".");
              return std::make_unique<Listening>(Endpoint{at.host, at.port != 0 ? at.port : std::uint16_t{4000}},
                                                 open_);
            },
            .probe = [this](const std::string& host) -> Status {
              if (!away_.contains(host)) return {};
              return fail(Errc::unreachable, host + " is away");
            },
            .reopens = reopens};
  }
  void let_pass(ListenPlaces& places, transport::Duration time) {
    for (const transport::TimePoint end = now_ + time; now_ < end; now_ += 100ms) places.tick(now_);
  }
  static std::vector<bool> live(const ListenPlaces& places) {
    std::vector<bool> list;
    for (const ListenPlace& place : places.all()) list.push_back(place.live);
    return list;
  }

  std::set<std::string> away_, taken_;
  int open_ = 0;
  int tried_ = 0;
  transport::TimePoint now_{1000s};
};

TEST_F(ListenPlacesTest, AnAddressThatGoesIsReportedAtOnceAndUsedAgainOnceItHasStayed) {
  ListenPlaces places({{"a", 1}, {"b", 1}}, ways());
  int told = 0;
  places.on_change([&] { ++told; });
  ASSERT_TRUE(places.open());
  let_pass(places, 5s);
  EXPECT_EQ(told, 0);

  away_ = {"b"};
  let_pass(places, 600ms);
  EXPECT_EQ(told, 1);
  EXPECT_THAT(live(places), ElementsAre(true, false));
  EXPECT_EQ(places.all()[1].why_not, "b is away");
  EXPECT_EQ(open_, 1);
  let_pass(places, 60s);
  EXPECT_EQ(told, 1) << "once";
  EXPECT_EQ(tried_, 2) << "nothing is opened while its device is away";

  away_ = {};
  let_pass(places, 1s);
  EXPECT_THAT(live(places), ElementsAre(true, false)) << "an address may go again at once";
  let_pass(places, 2s);
  EXPECT_THAT(live(places), ElementsAre(true, true));
  EXPECT_EQ(told, 2);
  EXPECT_EQ(open_, 2);
}

TEST_F(ListenPlacesTest, AnAddressThatFlapsIsReportedLessAndLess) {
  ListenPlaces places({{"a", 1}, {"b", 1}}, ways());
  int told = 0;
  places.on_change([&] { ++told; });
  ASSERT_TRUE(places.open());
  for (int flap = 0; flap < 200; ++flap) {  // away for 1 s, there for 5 s: 20 minutes in all
    away_ = {"b"};
    let_pass(places, 1s);
    away_ = {};
    let_pass(places, 5s);
  }
  EXPECT_LE(told, 5) << "the address goes, is back after 2 s, goes, is back after 4 s, goes, and never stays for 8 s";
  EXPECT_THAT(live(places), ElementsAre(true, false));
  let_pass(places, 9s);
  EXPECT_THAT(live(places), ElementsAre(true, true));
  // After a calm time the flapping no longer counts.
  let_pass(places, 11min);
  away_ = {"b"};
  let_pass(places, 1s);
  away_ = {};
  let_pass(places, 3s);
  EXPECT_THAT(live(places), ElementsAre(true, true));
}

TEST_F(ListenPlacesTest, StartsWithTheAddressesThatExistAndTakesTheOthersLater) {
  away_ = {"a"};
  taken_ = {"c"};
  ListenPlaces places({{"a", 1}, {"b", 1}, {"c", 1}}, ways());
  ASSERT_TRUE(places.open());
  EXPECT_THAT(live(places), ElementsAre(false, true, false));
  let_pass(places, 30s);
  EXPECT_THAT(live(places), ElementsAre(false, true, false));
  EXPECT_THAT(places.all()[2].why_not, HasSubstr("cannot listen at c:1"));
  EXPECT_LE(tried_, 3 + 15) << "the daemon tries the address every two seconds";
  away_ = {};
  taken_ = {};
  let_pass(places, 10s);
  EXPECT_THAT(live(places), ElementsAre(true, true, true));
}

TEST_F(ListenPlacesTest, DoesNotStartIfNoAddressExists) {
  taken_ = {"a", "b"};
  ListenPlaces places({{"a", 1}, {"b", 1}}, ways());
  const Status opened = places.open();
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().message, AllOf(HasSubstr("a:1"), HasSubstr("b:1")));
}

TEST_F(ListenPlacesTest, AChosenPortStaysAndMustBeThereAtTheStart) {
  ListenPlaces places({{"a", 0}, {"b", 0}}, ways());
  ASSERT_TRUE(places.open());
  EXPECT_EQ(places.all()[1].at, (Endpoint{"b", 4000}));
  away_ = {"b"};
  let_pass(places, 1s);
  away_ = {};
  let_pass(places, 5s);
  EXPECT_EQ(places.all()[1].at, (Endpoint{"b", 4000}));

  away_ = {"b"};
  ListenPlaces without({{"a", 0}, {"b", 0}}, ways());
  EXPECT_FALSE(without.open()) << "there is no port number that the ranks could be told";
}

TEST_F(ListenPlacesTest, ASocketThatOutlivesItsDeviceIsKept) {
  ListenPlaces places({{"a", 1}, {"b", 1}}, ways(false));
  ASSERT_TRUE(places.open());
  away_ = {"b"};
  let_pass(places, 1s);
  EXPECT_THAT(live(places), ElementsAre(true, false));
  EXPECT_EQ(open_, 2);
  away_ = {};
  let_pass(places, 5s);
  EXPECT_THAT(live(places), ElementsAre(true, true));
  EXPECT_EQ(tried_, 2);
}

TEST_F(ListenPlacesTest, AfterItsEndNothingIsReported) {
  ListenPlaces places({{"a", 1}, {"b", 1}}, ways());
  int told = 0;
  places.on_change([&] { ++told; });
  ASSERT_TRUE(places.open());
  places.on_change(nullptr);
  away_ = {"b"};
  let_pass(places, 1s);
  EXPECT_EQ(told, 0);
}

}  // namespace
}  // namespace tributary::aggregator
