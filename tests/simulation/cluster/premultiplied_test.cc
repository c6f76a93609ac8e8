// Pre-multiplied sums while aggregators die: the call's own thread multiplies before the call begins, and every path must
// then carry the products.
#include <gtest/gtest.h>

#include <array>

#include "tests/simulation/cluster/cluster.h"

namespace tributary::simulation {
namespace {

using namespace std::chrono_literals;

// The products lie in the result's buffer if they fit there, although the program's own call is not in place. So they must
// stay until the result is whole. The aggregator dies while it sends results down, a little later in each run, so that
// some ranks have only half a payload.
TEST(PremultipliedSums, KeepTheProductsUntilTheResultIsWhole) {
  std::uint64_t half_written = 0, in_network = 0, fallback = 0;
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    ClusterSettings settings{.seed = seed, .aggregators = 1, .window = 8, .segment_bytes = 1024};
    settings.network.split_percent = 90;
    settings.network.link.jitter = 100us;
    Cluster cluster(settings);
    cluster.manager().levels = 1;
    constexpr std::array kForms{Collective::all_reduce, Collective::all_reduce, Collective::reduce,
                                Collective::reduce_scatter};
    cluster.add_group(3, 1, {.calls = 40, .count_max = 8000, .only = kForms[seed % kForms.size()], .multiplied = true});
    cluster.network().call_at(cluster.network().now() + 2ms + 60us * seed, [&] { cluster.aggregators()[0]->kill(); });
    ASSERT_TRUE(cluster.run(60s)) << "seed " << seed << "\n" << cluster.describe();
    ASSERT_TRUE(cluster.violations().empty()) << "seed " << seed << "\n" << cluster.describe();
    for (auto& rank : cluster.groups()[0]) {
      EXPECT_FALSE(rank->failure()) << cluster.describe();
      in_network += rank->communicator().info().bytes_in_network;
      fallback += rank->communicator().info().bytes_fallback;
    }
    half_written += cluster.network().statistics().half_written;
  }
  EXPECT_GT(half_written, 10U) << "the run did not reach the situation under test";
  EXPECT_GT(in_network, 0U);
  EXPECT_GT(fallback, 0U);
}

}  // namespace
}  // namespace tributary::simulation
