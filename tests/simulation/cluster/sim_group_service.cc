#include "tests/simulation/cluster/sim_group_service.h"

#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "tests/simulation/cluster/cluster.h"

namespace tributary::simulation {

using namespace std::chrono_literals;

void SimGroupService::request(const client::GroupRequest& request, DescriptorAnswer answer) {
  lanes_ = request.lanes;
  later([this, answer = std::move(answer)] { respond(0, 1, {}, answer); });
}

void SimGroupService::rebuild(std::uint64_t group, std::uint32_t epoch, const std::vector<std::string>& failed,
                              bool in_use, DescriptorAnswer answer) {
  if (in_use) ++cluster_.manager().moves;
  later([this, group, epoch, failed, answer = std::move(answer)] { respond(group, epoch + 1, failed, answer); });
}

void SimGroupService::places(std::uint64_t group, std::uint32_t epoch, std::uint32_t first, std::uint32_t count,
                             PageAnswer answer) {
  later([this, group, epoch, first, count, answer = std::move(answer)] {
    if (const Status known = check(group); !known) return answer(std::unexpected(known.error()));
    if (whole_.epoch != epoch) return answer(fail(Errc::bad_argument, "the group has other trees"));
    TokenPage page{.group = whole_.group, .epoch = epoch, .first_rank = first, .lanes = {}};
    for (const LaneDescriptor& lane : whole_.lanes) {
      const auto begin = lane.entries.begin() + first;
      page.lanes.emplace_back(begin, begin + count);
    }
    answer(token_page_from_json(to_json(page)));
  });
}

void SimGroupService::renew(std::uint64_t group, const client::GroupTraffic&,
                            std::function<void(Result<client::GroupLease>)> answer) {
  later([this, group, answer = std::move(answer)] {
    if (const Status known = check(group); !known) return answer(std::unexpected(known.error()));
    cluster_.manager().renew_lease(group);
    client::GroupLease lease{.better_trees = cluster_.below(100) < cluster_.settings().advice_percent,
                             .why = "others would do better",
                             .epoch = epoch_};
    // Other groups come and go: the trees have other rates each time.
    if (PathRates rates = cluster_.settings().rates; rates != PathRates{}) {
      rates.trees = 1 + rates.trees * (renewals_ * 5 % 8) / 4;
      lease.rates = rates;
    }
    ++renewals_;
    answer(lease);
  });
}

void SimGroupService::release(std::uint64_t group, const std::vector<std::string>&) {
  cluster_.manager().release(group);
}

void SimGroupService::later(std::function<void()> call) {
  cluster_.network().call_at(cluster_.network().now() + 1ms, [this, alive = alive_, call = std::move(call)] {
    if (!*alive) return;
    cluster_.manager().when_there([alive, call] {
      if (*alive) call();
    });
  });
}

Status SimGroupService::check(std::uint64_t group) {
  SimManager& manager = cluster_.manager();
  if (!manager.reachable || (manager.refuse_percent > 0 && cluster_.below(100) < manager.refuse_percent))
    return fail(Errc::unreachable, "the manager does not answer");
  const Status known = group == 0 ? Status{} : manager.check_lease(group);
  manager.forgotten += known ? 0U : 1U;
  return known;
}

void SimGroupService::respond(std::uint64_t group, std::uint32_t epoch, const std::vector<std::string>& failed,
                              const DescriptorAnswer& answer) {
  if (cluster_.manager().silent) return;
  if (const Status known = check(group); !known) return answer(std::unexpected(known.error()));
  if (group == 0) group = cluster_.manager().next_group++;
  cluster_.manager().renew_lease(group);
  auto planned = cluster_.manager().plan(group, epoch, nranks_, lanes_, failed);
  if (planned) epoch_ = planned->epoch;
  // Every other group gets its places by pages, even if it has few ranks.
  if (planned && group % 2 == 0) {
    whole_ = *planned;
    for (LaneDescriptor& lane : planned->lanes) lane.entries.clear();
  }
  answer(std::move(planned));
}

}  // namespace tributary::simulation
