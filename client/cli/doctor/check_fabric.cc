// Reads the measurements between hosts, and says which link or way is slow, lossy, far or cut.
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <functional>

#include "client/cli/doctor/measurement.h"
#include "client/cli/fabric/culprits.h"

namespace tributary::cli::doctor {
namespace {

using fabric::FabricReport;
using fabric::PairRecord;
using meter::bits_text;
using meter::part_text;
using meter::seconds_text;

constexpr std::size_t kPairsNamedMax = 20;
constexpr double kFarFactor = 5;  // a far pair's round trip, divided by the round trip of most pairs
constexpr double kFarPairSeconds = 0.0003;

/// One kind of fault, and the doctor's texts about it.
struct Fault {
  std::string what;  // "rate", "loss"
  std::function<bool(const PairRecord&)> bad;
  std::function<double(const PairRecord&)> value;
  std::function<std::string(double)> text;
  std::function<std::string(double)> why;
  std::function<std::string(const std::string&)> mend;  // gets the names of the hosts to look at
  bool fatal = false;
};

class FabricCheck {
 public:
  explicit FabricCheck(const FabricReport& report) : report_(report) {
    std::vector<double> rates, trips;
    for (const PairRecord& p : report.pairs) {
      if (!p.measured()) continue;
      if (p.way.bits_to > 0) rates.push_back(p.way.bits_to);
      if (p.way.round_trips.least > 0) trips.push_back(p.way.round_trips.least);
    }
    if (!rates.empty()) typical_rate_ = meter::upper_median(rates);
    if (!trips.empty()) typical_trip_ = meter::upper_median(trips);
    if (!rates.empty()) least_rate_ = *std::ranges::min_element(rates);
  }

  Findings run() {
    findings_.push_back(summary());
    say(unreached());
    say(stalls());
    say(slow());
    say(lossy());
    say(far());
    return std::move(findings_);
  }

 private:
  [[nodiscard]] Finding summary() const {
    Finding f{.part = "fabric", .what = fmt::format("{} hosts", report_.hosts.size())};
    f.found = fmt::format("{} ways measured", report_.pairs.size());
    if (typical_rate_ > 0)
      f.found += fmt::format("; {} over most, {} at least; round trip {}", bits_text(typical_rate_),
                             bits_text(least_rate_), seconds_text(typical_trip_));
    return f;
  }

  [[nodiscard]] double wanted_rate(const PairRecord& p) const {
    const double a = report_.hosts[p.from].line_rate, b = report_.hosts[p.to].line_rate;
    const double line = a > 0 && b > 0 ? std::min(a, b) : std::max(a, b);
    return line > 0 ? line : typical_rate_;
  }

  [[nodiscard]] Fault unreached() const {
    return {
        .what = "connection",
        .bad = [](const PairRecord& p) { return !p.measured(); },
        .value = [](const PairRecord&) { return 0.0; },
        .text = [](double) { return std::string("no measurement"); },
        .why = [](double) { return std::string("a job over these hosts cannot meet, or waits until its time-out"); },
        .mend =
            [](const std::string& hosts) {
              return "ip route get ADDRESS, and the firewall (nft list ruleset), on " + hosts;
            },
        .fatal = true};
  }
  [[nodiscard]] Fault stalls() const {
    return {.what = "large frames",
            .bad = [](const PairRecord& p) { return p.measured() && p.way.stalled; },
            .value = [](const PairRecord& p) { return static_cast<double>(p.mtu_here); },
            .text = [](double mtu) { return fmt::format("frames of {:.0f} bytes vanish, small ones pass", mtu); },
            .why =
                [](double) {
                  return std::string("a large message over this way never arrives: the job waits until its time-out");
                },
            .mend =
                [](const std::string& hosts) {
                  return "one MTU for all ports of the way: ip link show, on " + hosts +
                         ", and on the switches between";
                },
            .fatal = true};
  }
  [[nodiscard]] Fault slow() const {
    return {.what = "rate",
            .bad = [this](const PairRecord& p) { return is_slow(p); },
            .value = [](const PairRecord& p) { return p.way.bits_to; },
            .text = [this](double rate) { return bits_text(rate) + " of " + bits_text(typical_rate_or_line()); },
            .why = [this](double rate) { return cost_of_rate(rate, typical_rate_or_line()); },
            .mend =
                [](const std::string& hosts) {
                  return "ethtool INTERFACE | grep Speed; tc qdisc show dev INTERFACE, on " + hosts +
                         ". A link that has come up slow: ethtool -s INTERFACE autoneg on; a limit: tc qdisc del dev "
                         "INTERFACE root";
                },
            .fatal = false};
  }
  [[nodiscard]] Fault lossy() const {
    return {.what = "loss",
            .bad = [](const PairRecord& p) { return p.measured() && p.way.lost_to > kLossyAbove; },
            .value = [](const PairRecord& p) { return p.way.lost_to; },
            .text = [](double part) { return part_text(part) + " of the segments were sent again"; },
            .why = [](double part) { return cost_of_loss(part); },
            .mend =
                [](const std::string& hosts) {
                  return "ip -s link show; ethtool -S INTERFACE | grep -iE 'err|drop|crc|discard', on " + hosts +
                         ". Errors: change the cable or the transceiver; drops: the queues of the switch's port";
                },
            .fatal = false};
  }
  [[nodiscard]] Fault far() const {
    return {
        .what = "round trip",
        .bad =
            [this](const PairRecord& p) {
              return p.measured() && p.way.round_trips.least > std::max(kFarPairSeconds, kFarFactor * typical_trip_);
            },
        .value = [](const PairRecord& p) { return p.way.round_trips.least; },
        .text = [this](double s) { return seconds_text(s) + ", where most ways take " + seconds_text(typical_trip_); },
        .why =
            [](double s) {
              return fmt::format("1,000 small allreduces over this way take {} at least", seconds_text(1000 * s));
            },
        .mend =
            [](const std::string& hosts) {
              return "tracepath -n ADDRESS, on " + hosts + "; keep a job's hosts within one place";
            },
        .fatal = false};
  }

  [[nodiscard]] double typical_rate_or_line() const {
    double line = 0;
    for (const auto& host : report_.hosts) line = std::max(line, host.line_rate);
    return std::max(line, typical_rate_);
  }

  [[nodiscard]] bool is_slow(const PairRecord& p) const {
    constexpr double kBusy = 0.9;  // part of a core from which on the processor is the limit, not the link
    return p.measured() && !p.way.stalled && p.way.bits_to < wanted_rate(p) * kSlowBelow && p.way.processor < kBusy;
  }

  /// Returns the upper median of the values of those bad pairs for which `chosen` holds.
  template <class Chosen>
  [[nodiscard]] double value_of(const Fault& fault, Chosen chosen) const {
    std::vector<double> values;
    for (const PairRecord& p : report_.pairs) {
      if (chosen(p) && fault.bad(p)) values.push_back(fault.value(p));
    }
    return values.empty() ? 0 : meter::upper_median(values);
  }

  void say(const Fault& fault) {
    std::vector<fabric::Verdict> verdicts;
    for (const PairRecord& p : report_.pairs) verdicts.push_back({.from = p.from, .to = p.to, .bad = fault.bad(p)});
    const auto culprits = fabric::find_culprits(verdicts, static_cast<std::uint32_t>(report_.hosts.size()));
    for (const std::uint32_t host : culprits.senders) {
      say_host(fault, host, "from", "its link out", value_of(fault, [&](const auto& p) { return p.from == host; }));
    }
    for (const std::uint32_t host : culprits.receivers) {
      say_host(fault, host, "to", "its link in", value_of(fault, [&](const auto& p) { return p.to == host; }));
    }
    for (std::size_t i = 0; i < culprits.pairs.size(); ++i) {
      if (i == kPairsNamedMax) return say_more(fault, culprits.pairs.size() - i);
      say_pair(fault, report_.pairs[culprits.pairs[i]]);
    }
  }

  void say_host(const Fault& fault, std::uint32_t host, const char* direction, const char* link, double value) {
    const std::string& name = report_.hosts[host].name;
    add(fault, fmt::format("{} {} {}", fault.what, direction, name),
        fault.text(value) + fmt::format(", with most other hosts: {}", link), fault.why(value), fault.mend(name));
  }
  void say_pair(const Fault& fault, const PairRecord& p) {
    const std::string &from = report_.hosts[p.from].name, &to = report_.hosts[p.to].name;
    const double value = fault.value(p);
    const bool alone = report_.hosts.size() == 2;
    std::string found = p.measured() ? fault.text(value) : std::string(p.trouble.data());
    found += alone ? ": a third host would tell which of the two it is"
                   : ": the way between, as both do well with other hosts";
    add(fault, fault.what + " from " + from + " to " + to, found, fault.why(value), fault.mend(from + " and " + to));
  }
  void say_more(const Fault& fault, std::size_t number) {
    add(fault, fault.what, fmt::format("{} more ways are alike", number), "",
        "mend those above first, then measure again");
  }
  void add(const Fault& fault, std::string what, std::string found, std::string why, std::string mend) {
    findings_.push_back({.part = "fabric",
                         .what = std::move(what),
                         .level = fault.fatal ? Level::bad : Level::warning,
                         .found = std::move(found),
                         .why = std::move(why),
                         .mend = std::move(mend)});
  }

  const FabricReport& report_;
  double typical_rate_ = 0, typical_trip_ = 0, least_rate_ = 0;
  Findings findings_;
};

}  // namespace

Findings check_fabric(const FabricReport& report) {
  return FabricCheck(report).run();
}

}  // namespace tributary::cli::doctor
