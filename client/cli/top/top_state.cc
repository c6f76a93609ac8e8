#include "client/cli/top/top_state.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "client/cli/manager/group_view.h"
#include "client/cli/terminal/table.h"
#include "tributary/protocol/reason.h"

namespace tributary::cli {
namespace {

using nlohmann::json;

// The time without a change after which a rate is 0: longer than the time between two renewals, which carry the counts.
constexpr std::chrono::seconds kStillAfter{20};

std::string rate_of_bytes(double per_second) {
  return bytes_text(static_cast<std::uint64_t>(per_second)) + "/s";
}

std::string share_of(std::uint64_t part, std::uint64_t all) {
  return all == 0 ? "-" : fmt::format("{:.1f} %", 100.0 * static_cast<double>(part) / static_cast<double>(all));
}

/// Removes rates whose row is no longer listed.
template <class Rates, class Rows, class Key>
void keep_listed(Rates& rates, const Rows& rows, Key key) {
  std::erase_if(rates, [&](const auto& one) {
    return std::ranges::none_of(rows, [&](const auto& row) { return row.*key == one.first; });
  });
}

void add_table(std::vector<TopLine>& lines, const Table& table, const std::vector<Colour>& colours) {
  const std::string text = table.text();
  std::size_t row = 0;
  for (std::size_t begin = 0; begin < text.size(); ++row) {
    const std::size_t end = text.find('\n', begin);
    lines.push_back({text.substr(begin, end - begin), row == 0 ? Colour::heading : colours.at(row - 1)});
    begin = end + 1;
  }
}

}  // namespace

void ToldRate::tell(std::uint64_t count, TimePoint now) {
  if (!told_ || count < count_) {  // a restarted process counts from 0
    per_second_ = 0;
  } else if (count > count_) {
    const std::chrono::duration<double> between = now - changed_at_;
    per_second_ = between.count() > 0 ? static_cast<double>(count - count_) / between.count() : 0;
  } else {
    if (now - changed_at_ > kStillAfter) per_second_ = 0;
    return;
  }
  told_ = true;
  count_ = count;
  changed_at_ = now;
}

void TopState::take(const json& aggregators, const json& groups, TimePoint now) {
  trouble_.clear();
  aggregators_.clear();
  for (const json& from : aggregators.at("aggregators")) {
    const json& load = from.at("load");
    Aggregator a{.name = from.at("name"),
                 .state = from.at("state"),
                 .host = from.at("host"),
                 .version = from.at("version"),
                 .lanes = load.at("lanes_active"),
                 .sessions = load.at("sessions"),
                 .reserved = from.at("memory_reserved_bytes"),
                 .memory = from.at("memory_bytes"),
                 .summed = load.at("contribution_bytes_total")};
    ToldRate& rate = aggregator_rates_[a.name];
    rate.tell(a.summed, now);
    a.summed_per_second = rate.per_second();
    aggregators_.push_back(std::move(a));
  }
  groups_.clear();
  for (const json& from : groups.at("groups")) {
    Traffic traffic;
    traffic.add(from);
    Group g{.number = from.at("group"),
            .ranks = processes_of(from),
            .in_network = traffic.in_network,
            .between_ranks = traffic.between_ranks,
            .in_shared_memory = traffic.in_shared_memory,
            .age = from.value("age_seconds", std::uint64_t{0}),
            .job = from.at("job"),
            .user = from.value("user", ""),
            .path = path_of(from),
            .reason = coded(from.value("code", ""), from.at("reason").get<std::string>()),
            .late = late_lines(from)};
    GroupRates& rates = group_rates_[g.number];
    rates.in_network.tell(g.in_network, now);
    rates.between_ranks.tell(g.between_ranks, now);
    rates.in_shared_memory.tell(g.in_shared_memory, now);
    g.in_network_per_second = rates.in_network.per_second();
    g.between_per_second = rates.between_ranks.per_second();
    g.shared_per_second = rates.in_shared_memory.per_second();
    groups_.push_back(std::move(g));
  }
  keep_listed(aggregator_rates_, aggregators_, &Aggregator::name);
  keep_listed(group_rates_, groups_, &Group::number);
  std::ranges::stable_sort(aggregators_, std::greater<>{}, &Aggregator::summed_per_second);
  std::ranges::stable_sort(groups_, std::greater<>{}, [](const Group& g) {
    return g.in_network_per_second + g.between_per_second + g.shared_per_second;
  });
}

std::vector<TopLine> TopState::lines(const std::string& title) const {
  std::vector<TopLine> lines;
  std::uint64_t ranks = 0;
  double in_network = 0, between = 0, shared = 0;
  for (const Group& g : groups_) {
    ranks += g.ranks;
    in_network += g.in_network_per_second;
    between += g.between_per_second;
    shared += g.shared_per_second;
  }
  lines.push_back({title, Colour::heading});
  lines.push_back({fmt::format(
      "aggregators: {}, groups: {}, ranks: {}; in-network {}, between ranks {}, shared memory {}", aggregators_.size(),
      groups_.size(), ranks, rate_of_bytes(in_network), rate_of_bytes(between), rate_of_bytes(shared))});
  lines.push_back({printable(trouble_), Colour::bad});
  Table sites(
      {"AGGREGATOR", "STATE", "HOST", "LANES", "SESSIONS", "RESERVED", "MEMORY", "SUMMING", "SUMMED", "VERSION"});
  std::vector<Colour> colours;
  for (const Aggregator& a : aggregators_) {
    sites.add({a.name, a.state, a.host, std::to_string(a.lanes), std::to_string(a.sessions), bytes_text(a.reserved),
               bytes_text(a.memory), rate_of_bytes(a.summed_per_second), bytes_text(a.summed), a.version});
    colours.push_back(colour_of(a.state));
  }
  add_table(lines, sites, colours);
  lines.push_back({});
  Table jobs({"GROUP", "JOB", "USER", "AGE", "RANKS", "PATH", "IN-NETWORK", "BETWEEN RANKS", "SHARED MEMORY", "SHARE",
              "REASON"});
  colours.clear();
  for (const Group& g : groups_) {
    jobs.add({std::to_string(g.number), g.job, g.user.empty() ? "-" : g.user, age_text(g.age), std::to_string(g.ranks),
              g.path, rate_of_bytes(g.in_network_per_second), rate_of_bytes(g.between_per_second),
              rate_of_bytes(g.shared_per_second),
              share_of(g.in_network, g.in_network + g.between_ranks + g.in_shared_memory), g.reason});
    colours.push_back(colour_of(g.path));
  }
  add_table(lines, jobs, colours);
  for (const Group& g : groups_) {
    for (const std::string& line : g.late) lines.push_back({printable(line), Colour::bad});
  }
  return lines;
}

}  // namespace tributary::cli
