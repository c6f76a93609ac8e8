// Meters and echoes, over the simulated network, and the doctor's findings about measured ways.
#include <gmock/gmock.h>

#include <algorithm>
#include <functional>
#include <future>
#include <set>
#include <thread>

#include "client/cli/doctor/measurement.h"
#include "client/cli/fabric/culprits.h"
#include "client/cli/fabric/rounds.h"
#include "client/cli/meter/echo.h"
#include "client/cli/meter/figures.h"
#include "client/cli/meter/way.h"
#include "tributary/transport/tcp.h"

namespace tributary::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(Figures, AreComputedFromRoundTrips) {
  std::vector<double> times;
  for (int i = 200; i > 0; --i) times.push_back(i);
  const auto r = meter::round_trips_of(times);
  EXPECT_EQ(r.least, 1);
  EXPECT_EQ(r.median, 100);
  EXPECT_EQ(r.p99, 199);
  EXPECT_EQ(meter::round_trips_of({7}).p99, 7);
}

TEST(Figures, AreReadable) {
  EXPECT_EQ(meter::bits_text(9.4e8), "940.0 Mbit/s");
  EXPECT_EQ(meter::bits_text(1e10), "10.0 Gbit/s");
  EXPECT_EQ(meter::seconds_text(12.5e-6), "12.5 us");
  EXPECT_EQ(meter::seconds_text(0.0031), "3.10 ms");
  EXPECT_EQ(meter::part_text(0.0031), "0.31 %");
}

// ---- a meter and an echo

/// An echo on a thread of its own, as if it ran on another host.
class EchoHost {
 public:
  explicit EchoHost(const meter::EchoProof& proof) {
    std::promise<Endpoint> at;
    auto told = at.get_future();
    thread_ = std::jthread([proof, at = std::move(at), this]() mutable {
      transport::TcpTransport transport;
      meter::Echo echo(transport, 65536);
      const auto listener = transport.listen({"127.0.0.1", 0}, echo);
      at.set_value((*listener)->local());
      served = echo.serve(proof, std::chrono::seconds(20), std::chrono::seconds(60));
    });
    where = told.get();
  }
  bool ended() {
    thread_.join();
    return served;
  }
  Endpoint where;

 private:
  bool served = false;
  std::jthread thread_;
};

class MeterAndEcho : public testing::Test {
 protected:
  static constexpr meter::EchoProof kProof{std::byte{7}};

  std::unique_ptr<meter::LaneMeter> visitor(const Endpoint& at) {
    auto one = std::make_unique<meter::LaneMeter>(transport_, meter::LaneShape{.window = 16, .segment_bytes = 65536});
    one->attach(transport_.connect(at, *one, kLimit));
    return one;
  }

  static constexpr std::chrono::seconds kLimit{20};
  transport::TcpTransport transport_;
};

TEST_F(MeterAndEcho, MeasureMessagesAndAStream) {
  EchoHost host(kProof);
  auto one = visitor(host.where);
  ASSERT_TRUE(one->join(kProof, kLimit));
  const auto times = one->round_trips(50, 64, kLimit);
  ASSERT_TRUE(times) << times.error().message;
  EXPECT_EQ(times->size(), 50U);
  const auto stream = one->stream(false, std::chrono::milliseconds(50));
  ASSERT_TRUE(stream) << stream.error().message;
  EXPECT_FALSE(stream->stalled);
  EXPECT_GT(stream->bits_per_second, 0);
  one.reset();
  EXPECT_TRUE(host.ended());
}

TEST_F(MeterAndEcho, AStrangerIsTurnedAwayAndKeepsNobodyOut) {
  EchoHost host(kProof);
  std::vector<std::unique_ptr<meter::LaneMeter>> silent;
  for (int i = 0; i < 40; ++i) silent.push_back(visitor(host.where));
  auto stranger = visitor(host.where);
  EXPECT_FALSE(stranger->join(meter::EchoProof{std::byte{8}}, kLimit));
  auto one = visitor(host.where);
  ASSERT_TRUE(one->join(kProof, kLimit));
  auto again = visitor(host.where);
  EXPECT_FALSE(again->join(kProof, kLimit)) << "a proof is good for one connection";
  EXPECT_TRUE(one->round_trips(5, 64, kLimit));
  one.reset();
  EXPECT_TRUE(host.ended());
}

TEST_F(MeterAndEcho, LongAnswersAreRefused) {
  EchoHost host(kProof);
  auto one = visitor(host.where);
  ASSERT_TRUE(one->join(kProof, kLimit));
  EXPECT_TRUE(one->round_trips(1, meter::Echo::kAnswerBytesMax, kLimit));
  EXPECT_FALSE(one->round_trips(1, meter::Echo::kAnswerBytesMax + 1, kLimit));
  EXPECT_TRUE(host.ended());
}

TEST(Way, SegmentsThatTheOtherSideHasAreNotLost) {
  meter::Way way{.lost_from = 0};
  meter::add_facts(way, {.segments_out = 1000, .segments_again = 10}, {.segments_out = 3000, .segments_again = 4});
  EXPECT_EQ(way.lost_to, 0.004);
  EXPECT_EQ(way.lost_full, 0);
  meter::add_facts(way, {.segments_out = 1000, .segments_again = 10}, {.segments_out = 3000, .segments_again = 30});
  EXPECT_EQ(way.lost_to, 0.01);
  EXPECT_EQ(way.lost_full, 0.01);
}

TEST(Way, LateMessagesCountIfTheyAreMoreThanABusyHostExplains) {
  std::vector<double> times(1000, 20e-6);
  const auto with_late = [&](std::size_t late, double seconds) {
    std::vector<double> all = times;
    std::fill_n(all.begin(), late, seconds);
    return meter::part_late(all);
  };
  EXPECT_EQ(with_late(4, 0.011), 0);
  EXPECT_EQ(with_late(20, 0.011), 0.02);
  EXPECT_EQ(with_late(1, 0.25), 0);
  EXPECT_EQ(with_late(2, 0.25), 0.002);
  times.assign(1000, 0.008);
  EXPECT_EQ(with_late(100, 0.020), 0) << "a far host, whose messages vary";
  EXPECT_EQ(with_late(20, 0.027), 0.02);
  EXPECT_EQ(meter::part_late({}), 0);
}

TEST(Way, MessagesThatCameBackLateWereLostOnTheirWayBack) {
  meter::Way way{.lost_from = 0.03};
  meter::add_facts(way, {.segments_out = 1000, .segments_again = 10}, {.segments_out = 1000, .segments_again = 10});
  EXPECT_DOUBLE_EQ(way.lost_from, 0.02);
}

// ---- rounds

/// Checks the facts that must hold for every schedule, and returns the pairs.
std::set<std::pair<std::uint32_t, std::uint32_t>> pairs_of(std::uint32_t hosts) {
  const fabric::Rounds rounds(hosts);
  std::set<std::pair<std::uint32_t, std::uint32_t>> pairs;
  for (std::uint32_t round = 0; round < rounds.count(); ++round) {
    for (std::uint32_t host = 0; host < hosts; ++host) {
      const auto partner = rounds.partner(round, host);
      if (!partner) continue;
      EXPECT_NE(*partner, host);
      EXPECT_LT(*partner, hosts);
      EXPECT_EQ(rounds.partner(round, *partner), host) << hosts << " hosts, round " << round;
      pairs.emplace(std::min(host, *partner), std::max(host, *partner));
    }
  }
  return pairs;
}

TEST(Rounds, WithFewHostsEachPairIsMeasured) {
  for (std::uint32_t hosts = 2; hosts <= fabric::kAllPairsHostsMax; ++hosts)
    EXPECT_EQ(pairs_of(hosts).size(), hosts * (hosts - 1) / 2) << hosts;
}

TEST(Rounds, WithManyHostsTheNumberGrowsByTheLogarithm) {
  EXPECT_EQ(fabric::Rounds(32'768).count(), 15U);
  EXPECT_EQ(fabric::Rounds(1'000).count(), 20U);
  for (const std::uint32_t hosts : {17U, 31U, 32U, 33U, 100U, 1000U}) {
    std::vector<std::uint32_t> partners(hosts);
    for (const auto& [a, b] : pairs_of(hosts)) {
      ++partners[a];
      ++partners[b];
    }
    EXPECT_GE(std::ranges::min(partners), 3U) << hosts << ": too few to tell a host from a way";
  }
}

// ---- culprits

std::vector<fabric::Verdict> all_pairs(std::uint32_t hosts,
                                       const std::function<bool(std::uint32_t, std::uint32_t)>& bad) {
  std::vector<fabric::Verdict> list;
  for (std::uint32_t a = 0; a < hosts; ++a) {
    for (std::uint32_t b = 0; b < hosts; ++b) {
      if (a != b) list.push_back({.from = a, .to = b, .bad = bad(a, b)});
    }
  }
  return list;
}

TEST(Culprits, AHostThatSendsSlowlyIsNamedAndNobodyElse) {
  const auto c = fabric::find_culprits(all_pairs(5, [](auto from, auto) { return from == 3; }), 5);
  EXPECT_THAT(c.senders, ElementsAre(3));
  EXPECT_THAT(c.receivers, IsEmpty());
  EXPECT_THAT(c.pairs, IsEmpty());
}

TEST(Culprits, SendersThatAreManyDoNotMakeReceiversLookBad) {
  const auto c = fabric::find_culprits(all_pairs(4, [](auto from, auto) { return from < 2; }), 4);
  EXPECT_THAT(c.senders, testing::UnorderedElementsAre(0, 1));
  EXPECT_THAT(c.receivers, IsEmpty());
}

TEST(Culprits, AHostThatReceivesSlowly) {
  const auto c = fabric::find_culprits(all_pairs(4, [](auto, auto to) { return to == 2; }), 4);
  EXPECT_THAT(c.senders, IsEmpty());
  EXPECT_THAT(c.receivers, ElementsAre(2));
}

TEST(Culprits, OnePairIsTheWayBetweenTwo) {
  const auto c = fabric::find_culprits(all_pairs(4, [](auto from, auto to) { return from == 1 && to == 2; }), 4);
  EXPECT_THAT(c.senders, IsEmpty());
  EXPECT_THAT(c.receivers, IsEmpty());
  ASSERT_EQ(c.pairs.size(), 1U);
}

TEST(Culprits, WithTwoHostsNeitherIsBlamed) {
  const auto c = fabric::find_culprits(all_pairs(2, [](auto from, auto) { return from == 0; }), 2);
  EXPECT_THAT(c.senders, IsEmpty());
  EXPECT_EQ(c.pairs.size(), 1U);
}

// ---- findings

doctor::MeasuredWay way_to(const std::string& name, double bits) {
  doctor::MeasuredWay w{.to = name, .at = {"10.0.0.9", 7471}, .interface = "eth0", .mtu_here = 9000};
  w.way = {.round_trips = {20e-6, 25e-6, 60e-6},
           .bits_to = bits,
           .bits_both = bits,
           .lost_to = 0,
           .lost_from = 0,
           .lost_full = 0,
           .processor = 0.3,
           .mtu = 9000};
  return w;
}

const doctor::Finding& about(const doctor::Findings& findings, const std::string& what) {
  static const doctor::Finding none;
  const auto found = std::ranges::find(findings, what, &doctor::Finding::what);
  if (found != findings.end()) return *found;
  ADD_FAILURE() << "nothing is said of " << what << ":\n" << to_text(findings);
  return none;
}

TEST(Measured, AGoodWayIsGood) {
  const auto findings = doctor::check_measured({way_to("a", 9.9e9), way_to("b", 9.8e9)});
  for (const auto& f : findings) EXPECT_EQ(f.level, doctor::Level::good) << f.what;
  EXPECT_EQ(about(findings, "rate to a").found, "9.9 Gbit/s there, 9.9 Gbit/s both ways at once");
}

TEST(Measured, ASlowLinkSaysWhatItCostsAndWhereToLook) {
  auto slow = way_to("b", 9.4e8);
  slow.line_rate = 1e10;
  const auto findings = doctor::check_measured({way_to("a", 9.9e9), slow});
  const auto& f = about(findings, "rate to b");
  EXPECT_EQ(f.level, doctor::Level::bad);
  EXPECT_THAT(f.found, HasSubstr("940.0 Mbit/s both ways at once, of 10.0 Gbit/s"));
  EXPECT_THAT(f.why,
              HasSubstr("an allreduce of 64 MiB over this link takes 571.14 ms in place of 53.69 ms: 10.6 times"));
  EXPECT_THAT(f.mend, HasSubstr("on the host of b"));
  EXPECT_EQ(about(findings, "rate to a").level, doctor::Level::good);
}

TEST(Measured, WhereAllWaysAreSlowThisHostIsNamed) {
  auto a = way_to("a", 9.4e8), b = way_to("b", 9.3e8);
  a.line_rate = b.line_rate = 1e10;
  EXPECT_THAT(about(doctor::check_measured({a, b}), "rate to a").mend, HasSubstr("here, as all ways from this host"));
}

TEST(Measured, WithoutALineRateTheBestWayIsTheMeasure) {
  const auto findings = doctor::check_measured({way_to("a", 1e9), way_to("b", 6e8)});
  EXPECT_EQ(about(findings, "rate to a").level, doctor::Level::good);
  EXPECT_EQ(about(findings, "rate to b").level, doctor::Level::warning);
}

TEST(Measured, AProcessorThatSendsNoMoreIsNotTheLinksFault) {
  auto w = way_to("a", 3e10);
  w.line_rate = 4e11;
  w.way.processor = 0.97;
  EXPECT_EQ(about(doctor::check_measured({w}), "rate to a").level, doctor::Level::unknown);
}

TEST(Measured, LossIsSaidByDirection) {
  auto w = way_to("a", 1e9);
  w.way.lost_from = 0.004;
  const auto f = about(doctor::check_measured({w, way_to("b", 1e9)}), "loss to a");
  EXPECT_EQ(f.level, doctor::Level::warning);
  EXPECT_THAT(f.found, HasSubstr("0.40 % of the segments from it came late"));
  EXPECT_THAT(f.mend, HasSubstr("ethtool -S eth0"));
  w.way.lost_to = 0.02;
  EXPECT_EQ(about(doctor::check_measured({w}), "loss to a").level, doctor::Level::bad);
}

TEST(Measured, LossOnlyOnAFullLinkIsNoFault) {
  auto w = way_to("a", 1e9);
  w.way.lost_full = 0.02;
  EXPECT_EQ(about(doctor::check_measured({w}), "loss to a").level, doctor::Level::good);
}

TEST(Measured, LongFramesThatVanishAreBad) {
  auto w = way_to("a", 1e9);
  w.way.stalled = true;
  w.way.mtu = 1500;
  const auto f = about(doctor::check_measured({w}), "frames to a");
  EXPECT_EQ(f.level, doctor::Level::bad);
  EXPECT_EQ(f.found, "frames of 9000 bytes vanish, frames of 1500 pass");
}

TEST(Measured, AFarAggregator) {
  auto w = way_to("a", 1e9);
  w.way.round_trips = {0.012, 0.0121, 0.02};
  EXPECT_THAT(about(doctor::check_measured({w}), "round trip to a").why, HasSubstr("1,000 of them take 12.0 s"));
}

TEST(Measured, AWayThatWasNotMeasuredIsUnknownWithTheReason) {
  const auto findings = doctor::check_measured({{.to = "a", .trouble = "no tree: aggregator a is draining"}});
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].level, doctor::Level::unknown);
  EXPECT_EQ(findings[0].found, "no tree: aggregator a is draining");
}

fabric::FabricReport report_of(std::uint32_t hosts, const std::function<void(fabric::PairRecord&)>& change) {
  fabric::FabricReport report;
  for (std::uint32_t i = 0; i < hosts; ++i) report.hosts.push_back({.name = "node-" + std::to_string(i)});
  for (const auto& v : all_pairs(hosts, [](auto, auto) { return false; })) {
    fabric::PairRecord p{.from = v.from, .to = v.to, .mtu_here = 9000, .way = way_to("", 1e10).way};
    change(p);
    report.pairs.push_back(p);
  }
  return report;
}

TEST(Fabric, AGoodFabricHasOneFinding) {
  const auto findings = doctor::check_fabric(report_of(4, [](auto&) {}));
  ASSERT_EQ(findings.size(), 1U) << to_text(findings);
  EXPECT_THAT(findings[0].found, HasSubstr("12 ways measured; 10.0 Gbit/s over most"));
}

TEST(Fabric, NamesTheHostThatSendsSlowly) {
  const auto findings = doctor::check_fabric(report_of(4, [](auto& p) {
    if (p.from == 2) p.way.bits_to = 1e9;
  }));
  ASSERT_EQ(findings.size(), 2U) << to_text(findings);
  EXPECT_EQ(findings[1].what, "rate from node-2");
  EXPECT_THAT(findings[1].found, HasSubstr("1.0 Gbit/s of 10.0 Gbit/s"));
  EXPECT_THAT(findings[1].why, HasSubstr("10.0 times as long"));
}

TEST(Fabric, NamesTheHostThatLosesWhatItReceives) {
  const auto findings = doctor::check_fabric(report_of(4, [](auto& p) {
    if (p.to == 1) p.way.lost_to = 0.01;
  }));
  ASSERT_EQ(findings.size(), 2U) << to_text(findings);
  EXPECT_EQ(findings[1].what, "loss to node-1");
}

TEST(Fabric, NamesAHostThatNobodyReaches) {
  const auto findings = doctor::check_fabric(report_of(4, [](auto& p) {
    if (p.to == 3) p.trouble = {"10.0.0.3:4000: Connection timed out"};
  }));
  ASSERT_EQ(findings.size(), 2U) << to_text(findings);
  EXPECT_EQ(findings[1].what, "connection to node-3");
  EXPECT_EQ(findings[1].level, doctor::Level::bad);
}

TEST(Fabric, WithTwoHostsItSaysThatAThirdIsNeeded) {
  auto report = report_of(2, [](auto& p) {
    if (p.from == 0) p.way.bits_to = 1e9;
  });
  report.hosts[0].line_rate = report.hosts[1].line_rate = 1e10;
  const auto findings = doctor::check_fabric(report);
  ASSERT_EQ(findings.size(), 2U) << to_text(findings);
  EXPECT_EQ(findings[1].what, "rate from node-0 to node-1");
  EXPECT_THAT(findings[1].found, HasSubstr("a third host"));
}

}  // namespace
}  // namespace tributary::cli
