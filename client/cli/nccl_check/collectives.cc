#include "client/cli/nccl_check/collectives.h"

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "client/cli/nccl_check/group.h"
#include "client/cli/nccl_check/values.h"

namespace tributary::cli::nccl_check {
namespace {

using Clock = std::chrono::steady_clock;
using Groups = std::vector<std::unique_ptr<Group>>;

constexpr int kOpsAsked = 4;  // NCCL never uses avg: it uses the sum, and scales it on the GPU

/// Connects, and checks that all ranks have the same outcome. NCCL compares outcomes only within each node: nodes with
/// different outcomes would wait without end.
bool connect_alike(Session& session, Group& group, std::vector<std::byte> handles) {
  bool connected = false;
  session.service().run([&] { connected = group.connect(std::move(handles)); });
  const auto everybody = session.bootstrap().all_gather_value(static_cast<std::uint8_t>(connected));
  require(std::ranges::all_of(everybody, [&](std::uint8_t one) { return one == everybody.front(); }),
          "CollNet connect succeeded on some ranks and failed on others");
  return connected;
}

/// Makes groups. Returns none if connect() has told the ranks that CollNet is off.
Groups make_groups(Session& session, int count) {
  Groups groups;
  for (int number = 0; number < count; ++number) {
    auto& group = *groups.emplace_back(std::make_unique<Group>(session, number));
    session.service().run([&] { group.listen(); });
    auto handles = session.bootstrap().all_gather(group.handle());
    if (!connect_alike(session, group, std::move(handles))) {
      require(number == 0, "CollNet connect failed for a later communicator");
      return {};
    }
    session.service().run([&] { group.register_memory(); });
  }
  return groups;
}

std::vector<Operation> supported_operations(Session& session) {
  std::vector<Operation> list;
  for (int type = 0; type < abi::kDataTypes; ++type) {
    for (int op = 0; op < kOpsAsked; ++op) {
      int supported = -1;
      const auto data_type = static_cast<abi::DataType>(type);
      const auto red_op = static_cast<abi::RedOp>(op);
      require_success(session.collnet().reduce_support(data_type, red_op, &supported), "reduceSupport");
      require(supported == 0 || supported == 1, "reduceSupport did not write its answer");
      // Use at least 32 KiB, as NCCL does: after a tensor of 4 bytes NCCL's buffer has stale bytes.
      if (supported == 1) list.push_back({data_type, red_op, 32 << 10, 40});
      if (supported == 1) list.push_back({data_type, red_op, 32 << 10, 32 << 10});
    }
  }
  int supported = -1;
  session.collnet().reduce_support(static_cast<abi::DataType>(abi::kDataTypes), abi::RedOp::sum, &supported);
  require(supported == 0, "reduceSupport supports a type that does not exist");
  return list;
}

/// Runs every operation once on every group, with one operation in flight for each place.
void run_round(const Groups& groups, const std::vector<Operation>& operations) {
  std::vector<std::size_t> next(groups.size());
  for (bool busy = true; busy;) {
    busy = false;
    for (std::size_t i = 0; i < groups.size(); ++i) {
      while (next[i] < operations.size() && groups[i]->start(operations[next[i]])) ++next[i];
      groups[i]->poll();
      busy = busy || next[i] < operations.size() || groups[i]->in_flight() > 0;
    }
  }
}

std::vector<Operation> large_operations() {
  std::vector<Operation> list;
  for (std::size_t i = 0; i < 24; ++i) {
    list.push_back({abi::DataType::float32, abi::RedOp::sum, Group::kChunkBytes, Group::kChunkBytes - 4 * i});
  }
  return list;
}

/// Runs rounds until rank 0's time is over. All ranks run equally many rounds.
std::uint64_t go_on(Session& session, const Groups& groups, double seconds) {
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  const auto operations = large_operations();
  std::uint64_t rounds = 0;
  while (session.bootstrap().all_gather_value(static_cast<std::uint8_t>(Clock::now() < end)).front() != 0) {
    session.progress().run([&] { run_round(groups, operations); });
    if (++rounds % 10 == 1) say(session.rank(), "round " + std::to_string(rounds));
  }
  return rounds;
}

/// Returns a text about collectives that the table does not offer.
std::string without(const CollNetTable& table) {
  return std::string(table.has_all_gather() ? "" : ", no allgather") +
         (table.has_reduce_scatter() ? "" : ", no reducescatter");
}

void close_groups(Session& session, Groups& groups) {
  if (session.rank() % 2 == 1) std::ranges::reverse(groups);
  for (const auto& group : groups) session.service().run([&] { group->close(); });
}

}  // namespace

bool check_collectives(Session& session) {
  Groups groups = make_groups(session, session.options().communicators);
  if (groups.empty()) return false;
  const auto operations = supported_operations(session);
  session.progress().run([&] { run_round(groups, operations); });
  // Register memory on the service thread while the progress thread works.
  auto registered = session.service().post([&] {
    for (const auto& group : groups) group->register_and_deregister();
  });
  session.progress().run([&] {
    run_round(groups, large_operations());
    for (const auto& group : groups) group->check_windows();
    for (const auto& group : groups) group->check_flush();
  });
  registered.get();
  std::uint64_t rounds = 0;
  for (; rounds < static_cast<std::uint64_t>(session.options().rounds); ++rounds) {
    session.progress().run([&] { run_round(groups, large_operations()); });
    if (rounds == 0) say(session.rank(), "round 1");
  }
  if (session.options().seconds > 0) rounds += go_on(session, groups, session.options().seconds);
  std::uint64_t ended = 0;
  for (const auto& group : groups) ended += group->ended();
  close_groups(session, groups);
  say(session.rank(), "collectives: " + std::to_string(operations.size() / 2) + " types and operators, " +
                          std::to_string(groups.size()) + " communicators, " + std::to_string(ended) +
                          " operations, all exact" + without(session.collnet()) +
                          (rounds > 0 ? "; " + std::to_string(rounds) + " further rounds" : ""));
  return true;
}

bool measure_collectives(Session& session) {
  Groups groups = make_groups(session, 1);
  if (groups.empty()) return false;
  Group& group = *groups.front();
  for (std::size_t bytes = 32 << 10; bytes <= Group::kChunkBytes; bytes *= 2) {
    for (const int depth : {1, session.options().depth}) {
      const int operations = 400;
      session.bootstrap().barrier();
      double seconds = 0;
      session.progress().run([&] {
        const auto begin = Clock::now();
        for (int started = 0, ended = 0; ended < operations;) {
          while (started < operations && static_cast<int>(group.in_flight()) < depth &&
                 group.start({abi::DataType::float32, abi::RedOp::sum, bytes, 4})) {
            ++started;
          }
          ended += group.poll(true) ? 1 : 0;
        }
        seconds = std::chrono::duration<double>(Clock::now() - begin).count();
      });
      if (session.rank() != 0) continue;
      std::printf("collnet allreduce %8zu bytes, %2d in flight: %9.1f us each, %6.2f GB/s\n", bytes, depth,
                  seconds * 1e6 / operations, static_cast<double>(bytes) * operations / seconds / 1e9);
    }
  }
  close_groups(session, groups);
  return true;
}

}  // namespace tributary::cli::nccl_check
