#include "tree-manager/replicas/copy.h"

#include <spdlog/spdlog.h>

#include <utility>

namespace tributary::manager {
namespace {

/// A copy tells no events: those in the log are the leader's.
ClusterSettings without_events(ClusterSettings settings) {
  settings.events = std::make_shared<ClusterEvents>();
  return settings;
}

/// The store's records at one moment.
class FrozenStore final : public Store {
 public:
  explicit FrozenStore(Snapshot records) : records_(std::move(records)) {}
  [[nodiscard]] std::uint64_t fence() const override { return 0; }
  Result<Snapshot> load() override { return std::move(records_); }
  Status raise_fence(std::uint64_t) override { return refuse(); }
  Status put(const AggregatorRecord&) override { return refuse(); }
  Status put(const GroupRecord&) override { return refuse(); }
  Status put_value(const std::string&, const std::string&) override { return refuse(); }
  Status remove_aggregator(const std::string&) override { return refuse(); }
  Status remove_group(std::uint64_t) override { return refuse(); }
  Status end_group(std::uint64_t, std::int64_t) override { return refuse(); }
  Result<bool> has_ended(std::uint64_t) override { return std::unexpected(refuse().error()); }
  Result<std::vector<EndedGroup>> ended_groups() override { return std::unexpected(refuse().error()); }
  Status forget_ended(std::int64_t) override { return refuse(); }

 private:
  static Status refuse() { return fail(Errc::retry, "this manager does not lead, and changes nothing"); }
  Snapshot records_;
};

}  // namespace

struct Copy::Made {
  std::unique_ptr<FrozenStore> store;
  std::unique_ptr<Cluster> cluster;
};

Copy::Copy(ClusterSettings settings, const LiveKey& key, const Clock& clock, Source source,
           std::chrono::milliseconds fresh)
    : settings_(without_events(std::move(settings))),
      key_(key),
      clock_(clock),
      source_(std::move(source)),
      fresh_(fresh) {}

Result<std::shared_ptr<Copy::Made>> Copy::make() const {
  auto topology = source_.topology();
  if (!topology) return std::unexpected(topology.error());
  auto records = source_.load();
  if (!records) return std::unexpected(records.error());
  auto made = std::make_shared<Made>();
  made->store = std::make_unique<FrozenStore>(std::move(*records));
  auto cluster = Cluster::open(settings_, *made->store, *key_.now(), clock_, std::move(*topology));
  if (!cluster) return std::unexpected(cluster.error());
  made->cluster = std::move(*cluster);
  return made;
}

std::shared_ptr<Cluster> Copy::cluster() {
  const std::lock_guard lock(mutex_);
  const auto now = clock_.now();
  if (!tried_at_ || now - *tried_at_ >= fresh_) {
    tried_at_ = now;
    auto made = make();
    if (made) made_ = std::move(*made);
    if (!made) spdlog::warn("the store could not be read for a copy: {}", made.error().message);
  }
  if (!made_) return nullptr;
  return {made_, made_->cluster.get()};
}

}  // namespace tributary::manager
